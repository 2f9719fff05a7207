// Correlations of the residual with all filters at all positions, an implicit matrix product in float32 whose result is
// never written: each position keeps the largest |correlation| / penalty and its filter. A thread takes 8 neighbouring
// positions ("a run") and 8 filters at a time, so that 64 sums stay in registers; the residual's rows and a block of
// filters lie in shared memory. NONNEGATIVE, SAMPLED and MAPPED (penalty by position) are given when compiled.

#define RUN 8
#define PLANES (CH * FD)  // for the scan a layer below is just another channel
#define WINDOW (((RUN + FW - 1) + 3) / 4 * 4)

// Copy 16 bytes to shared memory behind the back of the arithmetic, where the device can.
__device__ __forceinline__ void fetch(float4* to, const float4* from) {
#if __CUDA_ARCH__ >= 800
    const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(to));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at), "l"(from) : "memory");
#else
    *to = *from;
#endif
}

__device__ __forceinline__ void fetched() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

extern "C" __global__ void __launch_bounds__(256)
scan(const int* __restrict__ g, const int* __restrict__ active, const float* __restrict__ residual,
     const float* __restrict__ blocks, const float* __restrict__ factors, const unsigned char* __restrict__ mask,
     float* __restrict__ best_out, int* __restrict__ winner_out, float* __restrict__ ratio_out) {
    extern __shared__ __align__(16) float memory[];
    const int D = g[G_D], H = g[G_H], W = g[G_W], PD = g[G_PD], PH = g[G_PH], PW = g[G_PW], K = g[G_K], runs = g[G_RUNS];
    const int layer = blockIdx.x / g[G_BLOCKS], piece = blockIdx.x % g[G_BLOCKS], panel = layer / D, z = layer % D;
    const int n = active[blockIdx.y];
    const int threads = blockDim.x;
    const int first = piece * threads, total = H * runs;
    const int last = min(first + threads, total) - 1;
    const int y0 = first / runs, rows = last / runs - y0 + FH;
    const int x_panel = panel * runs * RUN;
    const int pitch = runs * RUN + WINDOW - RUN;
    float* samples = memory + 2 * TAPS * RUN;      // (PLANES, rows, pitch), behind two blocks of filters (TAPS, 8)

    const float* mine = residual + (i64)n * CH * padded_volume(g);
    for (int i = threadIdx.x; i < PLANES * rows * pitch; i += threads) {
        int row = i / pitch, x = x_panel + i - row * pitch;
        int plane = row / rows, y = y0 + row - plane * rows;
        samples[i] = x < PW ? mine[(((i64)(plane / FD) * PD + z + plane % FD) * PH + y) * PW + x] : 0.0f;
    }
    const int index = min(first + (int)threadIdx.x, last);
    const int y = index / runs, run = index - y * runs;
    const i64 line = (i64)z * H + y;
    const float* corner = samples + (y - y0) * pitch + run * RUN;

    float best[RUN];
    int winner[RUN];
    #pragma unroll
    for (int p = 0; p < RUN; ++p) { best[p] = 0.0f; winner[p] = 0; }

    const int n_blocks = (K + RUN - 1) / RUN;
    const float4* from = reinterpret_cast<const float4*>(blocks);
    for (int i = threadIdx.x; i < TAPS * RUN / 4; i += threads) fetch(reinterpret_cast<float4*>(memory) + i, from + i);
    for (int block = 0; block < n_blocks; ++block) {
        fetched();
        __syncthreads();
        const float* taps = memory + (block & 1) * TAPS * RUN;
        if (block + 1 < n_blocks) {
            float4* next = reinterpret_cast<float4*>(memory + (~block & 1) * TAPS * RUN);
            from += TAPS * RUN / 4;
            for (int i = threadIdx.x; i < TAPS * RUN / 4; i += threads) fetch(next + i, from + i);
        }
        float sums[RUN][RUN];
        #pragma unroll
        for (int k = 0; k < RUN; ++k)
            #pragma unroll
            for (int p = 0; p < RUN; ++p) sums[k][p] = 0.0f;
        #pragma unroll 1
        for (int row = 0; row < PLANES * FH; ++row) {
            const int plane = PLANES == 1 ? 0 : row / FH;
            const float* at = corner + (plane * rows + row - plane * FH) * pitch;
            const float4* tap = reinterpret_cast<const float4*>(taps + row * FW * RUN);
            float window[WINDOW];
            #pragma unroll
            for (int q = 0; q < WINDOW / 4; ++q) {
                float4 v = reinterpret_cast<const float4*>(at)[q];
                window[4 * q] = v.x; window[4 * q + 1] = v.y; window[4 * q + 2] = v.z; window[4 * q + 3] = v.w;
            }
            #pragma unroll
            for (int j = 0; j < FW; ++j) {
                float4 a = tap[2 * j], b = tap[2 * j + 1];
                float d[RUN] = {a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w};
                #pragma unroll
                for (int k = 0; k < RUN; ++k)
                    #pragma unroll
                    for (int p = 0; p < RUN; ++p) sums[k][p] = fmaf(window[j + p], d[k], sums[k][p]);
            }
        }
#if SAMPLED
        unsigned long long allowed = *reinterpret_cast<const unsigned long long*>(
            mask + ((((i64)block * g[G_PANELS] + panel) * D * H + line) * runs + run) * RUN);
#endif
        #pragma unroll
        for (int k = 0; k < RUN; ++k) {
            const int filter = block * RUN + k;
#if !MAPPED
            const float factor = __ldg(factors + filter);
#endif
            #pragma unroll
            for (int p = 0; p < RUN; ++p) {
#if MAPPED
                const int x = min(x_panel + run * RUN + p, W - 1);
                const float factor = filter < K ? __ldg(factors + ((i64)filter * D * H + line) * W + x) : 0.0f;
#endif
                float ratio = sums[k][p] * factor;
#if !NONNEGATIVE
                ratio = fabsf(ratio);
#endif
#if SAMPLED
                ratio = (allowed >> (8 * k + p)) & 1 ? ratio : 0.0f;
#endif
                if (ratio > best[p]) { best[p] = ratio; winner[p] = filter; }
            }
        }
    }
    float largest = 0.0f;
    const bool own = first + (int)threadIdx.x <= last;
    #pragma unroll
    for (int p = 0; p < RUN; ++p) {
        const int x = x_panel + run * RUN + p;
        if (own && x < W) {
            const i64 at = ((i64)n * D * H + line) * W + x;
            best_out[at] = best[p];
            winner_out[at] = winner[p];
            largest = fmaxf(largest, best[p]);
        }
    }
    #pragma unroll
    for (int o = 16; o; o >>= 1) largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, o));
    if ((threadIdx.x & 31) == 0) max_into(ratio_out + n, largest);
}

// Set the bit of every sampled code; `mask` is (filter blocks, panels, D · H, runs, 8 filters) bytes of 8 positions.
extern "C" __global__ void mark(const int* __restrict__ g, const i64* __restrict__ sample, i64 count, unsigned int* mask) {
    const i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    const int W = g[G_W], runs = g[G_RUNS];
    const i64 positions = n_positions(g);
    const int k = (int)(sample[i] / positions);
    const i64 position = sample[i] - k * positions, line = position / W;
    const int x = (int)(position - line * W);
    const int panel = x / (runs * 8), inside = x - panel * runs * 8;
    const i64 byte = ((((i64)(k / 8) * g[G_PANELS] + panel) * g[G_D] * g[G_H] + line) * runs + inside / 8) * 8 + k % 8;
    atomicOr(mask + byte / 4, 1u << (8 * (int)(byte % 4) + inside % 8));
}
