// The scan on tensor cores: float32 numbers as sums of two of bfloat16, three products of four (the fourth is smaller than
// what rounding takes). Filters are the rows of a product, taps its depth and positions its columns; as in `scan`, only the
// best filter of each position is kept. A warp takes 8 runs and 32 filters (a "chunk") at a time. Rows of filters are padded
// to pairs, since a register holds two neighbouring samples; for positions of odd number a second copy of the samples lies
// one sample further. Filters come in the order in which the lanes hold them (`fragments` in engine.py).

#define PAIRED ((FW + 1) / 2 * 2)
#define DEPTH 16
#define STEPS ((PLANES * FH * PAIRED + DEPTH - 1) / DEPTH)
#define CHUNK 32
#define CHUNK_WORDS (STEPS * 2 * 2 * 32)  // of 16 bytes: tiles of 16 filters, high and low parts, lanes

#if __CUDA_ARCH__ >= 800

__device__ __forceinline__ unsigned short rounded(float v) {
    const unsigned bits = __float_as_uint(v);
    return (unsigned short)((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}

__device__ __forceinline__ void multiply(float* c, const uint4& a, unsigned b0, unsigned b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b0), "r"(b1));
}

// Products of the filters of one or two tiles with the samples of 8 runs, over all taps.
template <int TILES>
__device__ __forceinline__ void correlate(float (&sums)[2][8][4], const uint4* taps, const unsigned* words,
                                          const int (&start)[8], const int2* places, int low) {
    #pragma unroll 3
    for (int step = 0; step < STEPS; ++step) {
        const int2 at = places[step * 4];
        uint4 h[TILES], l[TILES];
        #pragma unroll
        for (int m = 0; m < TILES; ++m) { h[m] = taps[step * 128 + m * 64]; l[m] = taps[step * 128 + m * 64 + 32]; }
        #pragma unroll
        for (int t = 0; t < 8; ++t) {
            const unsigned* from = words + start[t];
            const unsigned h0 = from[at.x], h1 = from[at.y], l0 = from[low + at.x], l1 = from[low + at.y];
            #pragma unroll
            for (int m = 0; m < TILES; ++m) multiply(sums[m][t], h[m], l0, l1);
            #pragma unroll
            for (int m = 0; m < TILES; ++m) multiply(sums[m][t], l[m], h0, h1);
            #pragma unroll
            for (int m = 0; m < TILES; ++m) multiply(sums[m][t], h[m], h0, h1);
        }
    }
}

extern "C" __global__ void __launch_bounds__(256, 2)
scan_tensor(const int* __restrict__ g, const int* __restrict__ active, const float* __restrict__ residual,
            const float4* __restrict__ fragments, const float* __restrict__ factors,
            const unsigned char* __restrict__ mask, float* __restrict__ best_out, int* __restrict__ winner_out,
            float* __restrict__ ratio_out, int runs_a_block) {
    extern __shared__ __align__(16) float memory[];
    const int D = g[G_D], H = g[G_H], W = g[G_W], PD = g[G_PD], PH = g[G_PH], PW = g[G_PW], K = g[G_K], runs = g[G_RUNS];
    const int layer = blockIdx.x / g[G_BLOCKS], piece = blockIdx.x % g[G_BLOCKS], panel = layer / D, z = layer % D;
    const int n = active[blockIdx.y], lane = threadIdx.x & 31, warp = threadIdx.x >> 5, group = lane >> 2, quad = lane & 3;
    const int first = piece * runs_a_block, last = min(first + runs_a_block, H * runs) - 1;
    const int y0 = first / runs, rows = last / runs - y0 + FH, x_panel = panel * runs * RUN;
    const int pitch = runs * RUN + (PAIRED + 7) / 8 * 8;
    const int length = PLANES * rows * pitch, copy = (length / 2 + 31) / 32 * 32 + 16;  // words; the copies in other banks

    float4* chunks = reinterpret_cast<float4*>(memory);                            // two of CHUNK_WORDS
    int2* places = reinterpret_cast<int2*>(chunks + 2 * CHUNK_WORDS);              // (STEPS, 4): words of a lane's samples
    unsigned* words = reinterpret_cast<unsigned*>(places + STEPS * 4);             // high even, high odd, low even, low odd
    unsigned short* high = reinterpret_cast<unsigned short*>(words);
    unsigned short* low = high + 4 * copy;

    const float* mine = residual + (i64)n * CH * padded_volume(g);
    for (int i = threadIdx.x; i < length; i += blockDim.x) {
        const int row = i / pitch, x = x_panel + i - row * pitch, plane = row / rows, y = y0 + row - plane * rows;
        const float v = x < PW ? mine[(((i64)(plane / FD) * PD + z + plane % FD) * PH + y) * PW + x] : 0.0f;
        const unsigned short h = rounded(v), l = rounded(v - __uint_as_float((unsigned)h << 16));
        high[i] = h; low[i] = l;
        if (i) { high[2 * copy + i - 1] = h; low[2 * copy + i - 1] = l; }
    }
    for (int i = threadIdx.x; i < STEPS * 4; i += blockDim.x) {
        int at[2];
        for (int part = 0; part < 2; ++part) {
            const int tap = i / 4 * DEPTH + i % 4 * 2 + part * 8, row = tap / PAIRED;
            at[part] = row < PLANES * FH ? ((row / FH * rows + row % FH) * pitch + tap % PAIRED) / 2 : 0;
        }
        places[i] = make_int2(at[0], at[1]);
    }

    const int n_chunks = (K + CHUNK - 1) / CHUNK, passes = runs_a_block / 64;
    for (int i = threadIdx.x; i < CHUNK_WORDS; i += blockDim.x) fetch(chunks + i, fragments + i);
    float largest = 0.0f;
    for (int pass = 0; pass < passes; ++pass) {
        const int run0 = first + (pass * 8 + warp) * 8;
        int start[8];
        #pragma unroll
        for (int t = 0; t < 8; ++t) {
            const int run = min(run0 + t, last), y = run / runs;
            start[t] = ((y - y0) * pitch + (run - y * runs) * RUN) / 2 + (group >> 1) + (group & 1) * copy;
        }
        float best[8][2];
        int winner[8][2];
        #pragma unroll
        for (int t = 0; t < 8; ++t) { best[t][0] = best[t][1] = 0.0f; winner[t][0] = winner[t][1] = 0; }

        for (int chunk = 0; chunk < n_chunks; ++chunk) {
            const int done = pass * n_chunks + chunk;
            fetched();
            __syncthreads();
            const uint4* taps = reinterpret_cast<const uint4*>(chunks + (done & 1) * CHUNK_WORDS) + lane;
            if (done + 1 < passes * n_chunks) {
                const float4* from = fragments + (i64)(chunk + 1 == n_chunks ? 0 : chunk + 1) * CHUNK_WORDS;
                float4* next = chunks + (~done & 1) * CHUNK_WORDS;
                for (int i = threadIdx.x; i < CHUNK_WORDS; i += blockDim.x) fetch(next + i, from + i);
            }
            float sums[2][8][4];
            #pragma unroll
            for (int m = 0; m < 2; ++m)
                #pragma unroll
                for (int t = 0; t < 8; ++t)
                    #pragma unroll
                    for (int c = 0; c < 4; ++c) sums[m][t][c] = 0.0f;
            if (chunk * CHUNK + 16 < K) correlate<2>(sums, taps, words, start, places + quad, 2 * copy);
            else correlate<1>(sums, taps, words, start, places + quad, 2 * copy);
            #pragma unroll
            for (int m = 0; m < 4; ++m) {
                const int filter = chunk * CHUNK + m * 8 + group;
                const float factor = __ldg(factors + filter);
#if SAMPLED
                const i64 block = (i64)min(chunk * 4 + m, (K + 7) / 8 - 1) * g[G_PANELS] + panel;
                const unsigned char* bits = mask + ((block * D + z) * H * runs + run0) * RUN + group;
#endif
                #pragma unroll
                for (int t = 0; t < 8; ++t) {
#if SAMPLED
                    const unsigned allowed = __ldg(bits + min(t, last - run0) * RUN) >> 2 * quad;
#endif
                    #pragma unroll
                    for (int c = 0; c < 2; ++c) {
                        float ratio = sums[m >> 1][t][(m & 1) * 2 + c] * factor;
#if !NONNEGATIVE
                        ratio = fabsf(ratio);
#endif
#if SAMPLED
                        ratio = allowed >> c & 1 ? ratio : 0.0f;
#endif
                        if (ratio > best[t][c]) { best[t][c] = ratio; winner[t][c] = filter; }
                    }
                }
            }
        }
        // The lanes of a column hold different filters: put the best in all of them, then lane group t writes run t.
        #pragma unroll
        for (int t = 0; t < 8; ++t)
            #pragma unroll
            for (int c = 0; c < 2; ++c) {
                #pragma unroll
                for (int o = 4; o <= 16; o <<= 1) {
                    const float other = __shfl_xor_sync(0xffffffffu, best[t][c], o);
                    const int whose = __shfl_xor_sync(0xffffffffu, winner[t][c], o);
                    if (other > best[t][c] || (other == best[t][c] && whose < winner[t][c])) {
                        best[t][c] = other;
                        winner[t][c] = whose;
                    }
                }
                const int run = run0 + t, y = min(run, last) / runs, x = x_panel + (run - y * runs) * RUN + 2 * quad + c;
                if (group == t && run <= last && x < W) {
                    const i64 at = (((i64)n * D + z) * H + y) * W + x;
                    best_out[at] = best[t][c];
                    winner_out[at] = winner[t][c];
                    largest = fmaxf(largest, best[t][c]);
                }
            }
    }
    #pragma unroll
    for (int o = 16; o; o >>= 1) largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, o));
    if (lane == 0) max_into(ratio_out + n, largest);
}

#endif
