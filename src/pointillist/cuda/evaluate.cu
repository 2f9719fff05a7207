// What the codes are worth, in float64: the residual afresh from the codes, loss, energy and price of each signal, and the
// largest energy of a box of the residual, which bounds the rounding of the scan's correlations. MAPPED as elsewhere.

// difference = signal, on the padded grid.
extern "C" __global__ void fill(const int* __restrict__ g, const int* __restrict__ active,
                                const float* __restrict__ signals, double* __restrict__ difference) {
    const i64 length = CH * padded_volume(g), n = active[blockIdx.y];
    for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < length; i += (i64)gridDim.x * blockDim.x)
        difference[n * length + i] = signals[n * length + i];
}

// Subtract the codes of a bucket from a padded signal in float64, by a warp; returns Σ λ|z| of this lane's codes.
__device__ __forceinline__ double
subtract_bucket(const int* g, int lane, i64 n, const Spot& which, const float* __restrict__ filters,
                const double* __restrict__ penalty, const int* __restrict__ codes, const float* __restrict__ values,
                const int* __restrict__ counts, const int* offsets, double* signal) {
    const int bucket = bucket_number(g, which.z, which.y, which.x);
    const i64 one = n * n_buckets(g) + bucket, start = one * g[G_CAP];
    const Spot corner = corner_of(g, bucket);
    const int count = counts[one];
    double price = 0.0;
    for (int i0 = 0; i0 < count; i0 += 32) {
        const int i = i0 + lane, own_code = i < count ? codes[start + i] : 0;
        const float own = i < count ? values[start + i] : 0.0f;
#if MAPPED
        const i64 position = position_of(g, spot_of(g, own_code, corner));
        if (own != 0.0f) price += __ldg(penalty + (own_code >> 12) * n_positions(g) + position) * fabs((double)own);
#else
        if (own != 0.0f) price += __ldg(penalty + (own_code >> 12)) * fabs((double)own);
#endif
        for (unsigned todo = __ballot_sync(0xffffffffu, own != 0.0f); todo; todo &= todo - 1) {
            const int from = __ffs(todo) - 1, code = __shfl_sync(0xffffffffu, own_code, from);
            const double value = (double)__shfl_sync(0xffffffffu, own, from);
            float taps[PER_LANE];
            lane_taps(lane, filters, code >> 12, taps);
            double* at = signal + base_of(g, spot_of(g, code, corner));
            #pragma unroll
            for (int q = 0; q < PER_LANE; ++q)
                if (lane + 32 * q < TAPS) at[offsets[q]] -= value * (double)taps[q];
            __syncwarp();
        }
    }
    return price;
}

// difference −= D z for the buckets of one colour, a warp a bucket; sums[n][2] += Σ λ|z|.
extern "C" __global__ void
subtract(const int* __restrict__ g, const int* __restrict__ active, const float* __restrict__ filters,
         const double* __restrict__ penalty, const int* __restrict__ codes, const float* __restrict__ values,
         const int* __restrict__ counts, double* __restrict__ difference, double* __restrict__ sums, int colour) {
    const int lane = threadIdx.x & 31, index = blockIdx.x * (blockDim.x >> 5) + (threadIdx.x >> 5);
    Spot which;
    if (!of_colour(index, colour, g[G_NBZ], g[G_NBY], g[G_NBX], &which)) return;
    const i64 n = active[blockIdx.y];
    int offsets[PER_LANE];
    lane_offsets(lane, (int)padded_volume(g), g[G_PH] * g[G_PW], g[G_PW], offsets);
    double* mine = difference + n * CH * padded_volume(g);
    double price = subtract_bucket(g, lane, n, which, filters, penalty, codes, values, counts, offsets, mine);
    price = warp_sum(price);
    if (lane == 0 && price > 0.0) atomicAdd(sums + 3 * n + 2, price);
}

// residual = w · difference in float32; sums[n][0] += ½ Σ w difference², sums[n][1] += Σ w difference x.
extern "C" __global__ void
finish(const int* __restrict__ g, const int* __restrict__ active, const float* __restrict__ signals,
       const float* __restrict__ weights, i64 weight_stride, const double* __restrict__ difference,
       float* __restrict__ residual, double* __restrict__ sums) {
    __shared__ double totals[2];
    if (threadIdx.x < 2) totals[threadIdx.x] = 0.0;
    __syncthreads();
    const i64 length = CH * padded_volume(g), n = active[blockIdx.y];
    double loss = 0.0, energy = 0.0;
    for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < length; i += (i64)gridDim.x * blockDim.x) {
        const double d = difference[n * length + i], r = (double)weights[n * weight_stride + i] * d;
        residual[n * length + i] = (float)r;
        loss += 0.5 * r * d;
        energy += r * (double)signals[n * length + i];
    }
    loss = warp_sum(loss);
    energy = warp_sum(energy);
    if ((threadIdx.x & 31) == 0) { atomicAdd(totals, loss); atomicAdd(totals + 1, energy); }
    __syncthreads();
    if (threadIdx.x < 2) atomicAdd(sums + 3 * n + threadIdx.x, totals[threadIdx.x]);
}

// All of the above for signals that fit in shared memory in float64, a block each; the sums are taken in an order that does
// not depend on which warp came first.
extern "C" __global__ void __launch_bounds__(512, 2)
appraise(const int* __restrict__ g, const int* __restrict__ active, const float* __restrict__ signals,
         const float* __restrict__ filters, const double* __restrict__ penalty, const float* __restrict__ weights,
         i64 weight_stride, const int* __restrict__ codes, const float* __restrict__ values,
         const int* __restrict__ counts, float* __restrict__ residual, double* __restrict__ sums) {
    extern __shared__ __align__(16) double left[];  // what is left of the signal
    __shared__ double parts[16][3];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
    const int length = CH * (int)padded_volume(g);
    const i64 n = active[blockIdx.x];
    const float* given = signals + n * length;
    for (int i = threadIdx.x; i < length; i += blockDim.x) left[i] = given[i];
    __syncthreads();
    int offsets[PER_LANE];
    lane_offsets(lane, (int)padded_volume(g), g[G_PH] * g[G_PW], g[G_PW], offsets);
    double found[3] = {0.0, 0.0, 0.0};  // loss, energy and price
    for (int colour = 0; colour < (g[G_NBZ] > 1 ? 8 : 4); ++colour) {
        Spot which;
        for (int i = warp; of_colour(i, colour, g[G_NBZ], g[G_NBY], g[G_NBX], &which); i += warps)
            found[2] += subtract_bucket(g, lane, n, which, filters, penalty, codes, values, counts, offsets, left);
        __syncthreads();
    }
    for (int i = threadIdx.x; i < length; i += blockDim.x) {
        const double d = left[i], r = (double)weights[n * weight_stride + i] * d;
        residual[n * length + i] = (float)r;
        found[0] += 0.5 * r * d;
        found[1] += r * (double)given[i];
    }
    #pragma unroll
    for (int j = 0; j < 3; ++j) {
        const double part = warp_sum(found[j]);
        if (lane == 0) parts[warp][j] = part;
    }
    __syncthreads();
    if (threadIdx.x < 3) {
        double total = 0.0;
        for (int w = 0; w < warps; ++w) total += parts[w][threadIdx.x];
        sums[3 * n + threadIdx.x] = total;
    }
}

// peaks[n] = the largest Σ r² over the box of a position, over all channels; a block a tile of 32 × 32 positions of a layer.
#define SIDE 32
extern "C" __global__ void boxes(const int* __restrict__ g, const int* __restrict__ active,
                                 const float* __restrict__ residual, float* __restrict__ peaks) {
    extern __shared__ float squares[];                       // (SIDE + FH − 1, SIDE + FW − 1), then (SIDE + FH − 1, SIDE)
    const int width = SIDE + FW - 1, height = SIDE + FH - 1;
    float* across = squares + width * height;
    const int PD = g[G_PD], PH = g[G_PH], PW = g[G_PW], n = active[blockIdx.y], z = blockIdx.x % g[G_D];
    const int tile = blockIdx.x / g[G_D], tiles = (g[G_W] + SIDE - 1) / SIDE;
    const int y0 = tile / tiles * SIDE, x0 = tile % tiles * SIDE;
    for (int i = threadIdx.x; i < width * height; i += blockDim.x) {
        const int y = y0 + i / width, x = x0 + i % width;
        float sum = 0.0f;
        if (y < PH && x < PW)
            for (int c = 0; c < CH * FD; ++c) {
                const float r = residual[((((i64)n * CH + c / FD) * PD + z + c % FD) * PH + y) * PW + x];
                sum = fmaf(r, r, sum);
            }
        squares[i] = sum;
    }
    __syncthreads();
    for (int i = threadIdx.x; i < height * SIDE; i += blockDim.x) {
        float sum = 0.0f;
        for (int j = 0; j < FW; ++j) sum += squares[i / SIDE * width + i % SIDE + j];
        across[i] = sum;
    }
    __syncthreads();
    float largest = 0.0f;
    for (int i = threadIdx.x; i < SIDE * SIDE; i += blockDim.x) {
        float sum = 0.0f;
        for (int j = 0; j < FH; ++j) sum += across[i + j * SIDE];
        largest = fmaxf(largest, sum);
    }
    #pragma unroll
    for (int o = 16; o; o >>= 1) largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, o));
    if ((threadIdx.x & 31) == 0) max_into(peaks + n, largest);
}

// Non-zero codes of every bucket: how many (pass 0), then which and how large (pass 1, `places` their running count).
extern "C" __global__ void collect(const int* __restrict__ g, const int* __restrict__ codes,
                                   const float* __restrict__ values, const int* __restrict__ counts, int buckets,
                                   int pass, i64* __restrict__ places, i64* __restrict__ keys, float* __restrict__ out) {
    const int lane = threadIdx.x & 31;
    const i64 one = (i64)blockIdx.x * (blockDim.x >> 5) + (threadIdx.x >> 5);
    if (one >= (i64)buckets) return;
    const i64 n = one / n_buckets(g), positions = n_positions(g), start = one * g[G_CAP];
    const Spot corner = corner_of(g, (int)(one % n_buckets(g)));
    const int count = counts[one];
    i64 place = pass && one ? places[one - 1] : 0;
    i64 total = 0;
    for (int i0 = 0; i0 < count; i0 += 32) {
        const int i = i0 + lane;
        const float value = i < count ? values[start + i] : 0.0f;
        const unsigned alive = __ballot_sync(0xffffffffu, value != 0.0f);
        if (pass && value != 0.0f) {
            const int code = codes[start + i];
            const i64 to = place + total + __popc(alive & ((1u << lane) - 1));
            keys[to] = (n * g[G_K] + (code >> 12)) * positions + position_of(g, spot_of(g, code, corner));
            out[to] = value;
        }
        total += __popc(alive);
    }
    if (!pass && lane == 0) places[one] = total;
}
