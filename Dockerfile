# CPU:   docker build -t pointillist .
#        docker run --rm -v "$PWD":/data pointillist inpaint photo.png
# CUDA:  docker build -t pointillist:cuda --build-arg MORE="cupy-cuda12x[ctk]>=14" .
#        docker run --rm --gpus all -v "$PWD":/data pointillist:cuda learn photos/ -o filters.safetensors --device cuda
# Page:  docker run --rm --network host pointillist app --port 8700 --no-browser
ARG BASE=python:3.12-slim
FROM ${BASE}
ARG MORE=""
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore \
    NUMBA_CACHE_DIR=/var/cache/pointillist MPLCONFIGDIR=/var/cache/pointillist/matplotlib
COPY pyproject.toml setup.py README.md LICENSE /source/
COPY src /source/src
# The demo compiles the kernels once; containers find them, and may add their own.
RUN python3 -m venv /opt/pointillist \
    && /opt/pointillist/bin/pip install "/source[app,heif,hdf5,zarr]" ${MORE:+"$MORE"} \
    && rm -rf /source \
    && mkdir -p /data /var/cache/pointillist \
    && /opt/pointillist/bin/pointillist demo --output /tmp/demo --quiet \
    && rm -rf /tmp/demo \
    && chmod -R a+rwX /var/cache/pointillist /data
ENV PATH=/opt/pointillist/bin:$PATH
WORKDIR /data
USER 1000:1000
ENTRYPOINT ["pointillist"]
CMD ["--help"]
