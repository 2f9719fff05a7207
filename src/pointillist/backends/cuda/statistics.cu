// The dictionary's statistics from sparse codes, and the sweep over the filters. Codes are sorted by signal and position;
// sums are in float64 and added atomically, so the last bits may differ from run to run.

struct Place { int n, k, y, x; };

__device__ __forceinline__ Place place_of(const int* g, const int* signal, const int* filter, const int* position, int i) {
    Place p;
    p.n = signal[i]; p.k = filter[i]; p.y = position[i] / g[G_W]; p.x = position[i] - p.y * g[G_W];
    return p;
}

// imputed += D z, a warp a code.
extern "C" __global__ void
synthesise(const int* __restrict__ g, int count, const int* __restrict__ signal, const int* __restrict__ filter,
           const int* __restrict__ position, const float* __restrict__ values, const float* __restrict__ filters,
           double* __restrict__ imputed) {
    const int lane = threadIdx.x & 31, i = blockIdx.x * (blockDim.x >> 5) + (threadIdx.x >> 5);
    if (i >= count) return;
    const Place p = place_of(g, signal, filter, position, i);
    const int plane = g[G_PH] * g[G_PW];
    double* at = imputed + (i64)p.n * CH * plane + (i64)p.y * g[G_PW] + p.x;
    for (int t = lane; t < TAPS; t += 32) {
        const int c = t / (FH * FW), rest = t - c * (FH * FW);
        atomicAdd(at + (i64)c * plane + rest / FW * g[G_PW] + rest % FW,
                  (double)values[i] * (double)__ldg(filters + (i64)p.k * TAPS + t));
    }
}

// linear[k] += weight · z · (the box of the imputed signal that the code meets), a warp a code.
extern "C" __global__ void
add_boxes(const int* __restrict__ g, int count, const int* __restrict__ signal, const int* __restrict__ filter,
          const int* __restrict__ position, const float* __restrict__ values, const double* __restrict__ weights,
          const double* __restrict__ imputed, double* __restrict__ linear) {
    const int lane = threadIdx.x & 31, i = blockIdx.x * (blockDim.x >> 5) + (threadIdx.x >> 5);
    if (i >= count) return;
    const Place p = place_of(g, signal, filter, position, i);
    const int plane = g[G_PH] * g[G_PW];
    const double factor = weights[p.n] * (double)values[i];
    const double* at = imputed + (i64)p.n * CH * plane + (i64)p.y * g[G_PW] + p.x;
    for (int t = lane; t < TAPS; t += 32) {
        const int c = t / (FH * FW), rest = t - c * (FH * FW);
        atomicAdd(linear + (i64)p.k * TAPS + t, factor * at[(i64)c * plane + rest / FW * g[G_PW] + rest % FW]);
    }
}

// pairs[k ≤ l][shift of l from k] += weight · z_k z_l for codes closer than a filter, each pair once; a warp a code.
// rows[n · H + y] … rows[n · H + y + 1] are the codes of a row.
extern "C" __global__ void
add_pairs(const int* __restrict__ g, int count, const int* __restrict__ signal, const int* __restrict__ filter,
          const int* __restrict__ position, const float* __restrict__ values, const double* __restrict__ weights,
          const int* __restrict__ rows, double* __restrict__ pairs) {
    const int lane = threadIdx.x & 31, i = blockIdx.x * (blockDim.x >> 5) + (threadIdx.x >> 5);
    if (i >= count) return;
    const Place p = place_of(g, signal, filter, position, i);
    const int K = g[G_K], whole = (2 * FH - 1) * (2 * FW - 1) - 1;
    const double mine = weights[p.n] * (double)values[i];
    for (int dy = 0; dy < FH && p.y + dy < g[G_H]; ++dy) {
        const int begin = dy ? rows[p.n * g[G_H] + p.y + dy] : i, end = rows[p.n * g[G_H] + p.y + dy + 1];
        for (int j = begin + lane; j < end; j += 32) {
            const int shift = position[j] - (p.y + dy) * g[G_W] - p.x;
            if (shift >= FW) break;
            if (shift <= -FW) continue;
            int low = p.k, high = filter[j], at = (dy + FH - 1) * (2 * FW - 1) + shift + FW - 1;
            if (low > high) { const int swap = low; low = high; high = swap; at = whole - at; }
            const double product = mine * (double)values[j];
            double* block = pairs + ((i64)low * K - (i64)low * (low - 1) / 2 + high - low) * (whole + 1);
            atomicAdd(block + at, product);
            if (low == high && i != j) atomicAdd(block + whole - at, product);
        }
    }
}

// One step of the projected block coordinate descent, for filter k: block l computes (C_kl d_l), the last block to finish
// adds them up, steps and projects. `partial` is (K, TAPS), `done` starts from zero and is left at zero.
extern "C" __global__ void
step_filter(int K, int k, const double* __restrict__ pairs, const double* __restrict__ linear,
            const double* __restrict__ lipschitz, const unsigned char* __restrict__ support, int zero_mean,
            int nonnegative, double* filters, double* partial, int* done) {
    const int span = 2 * FW - 1, size = (2 * FH - 1) * span, area = FH * FW, l = blockIdx.x;
    __shared__ double block[(2 * FH - 1) * (2 * FW - 1)];
    __shared__ double other[TAPS];
    __shared__ double sums[33];
    __shared__ bool last;
    if (!(lipschitz[k] > 0.0)) return;
    const int low = min(k, l), high = max(k, l);
    const double* from = pairs + ((i64)low * K - (i64)low * (low - 1) / 2 + high - low) * size;
    // C_kl(δ) = C_lk(−δ): the block of an earlier filter is met mirrored.
    for (int i = threadIdx.x; i < size; i += blockDim.x) block[l >= k ? i : size - 1 - i] = from[i];
    for (int t = threadIdx.x; t < TAPS; t += blockDim.x) other[t] = filters[(i64)l * TAPS + t];
    __syncthreads();
    for (int t = threadIdx.x; t < TAPS; t += blockDim.x) {
        const int c = t / area, rest = t - c * area, y = rest / FW, x = rest % FW;
        double sum = 0.0;
        for (int v = 0; v < FH; ++v)
            for (int u = 0; u < FW; ++u) {
                // Samples y of filter k and v of filter l meet where l lies y − v further than k.
                sum += block[(y - v + FH - 1) * span + x - u + FW - 1] * other[c * area + v * FW + u];
            }
        partial[(i64)l * TAPS + t] = sum;
    }
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) last = atomicAdd(done, 1) == K - 1;
    __syncthreads();
    if (!last) return;
    __threadfence();
    if (threadIdx.x < 33) sums[threadIdx.x] = 0.0;
    for (int t = threadIdx.x; t < TAPS; t += blockDim.x) {
        double gradient = -linear[(i64)k * TAPS + t];
        for (int m = 0; m < K; ++m) gradient += __ldcg(partial + (i64)m * TAPS + t);
        const double value = filters[(i64)k * TAPS + t] - gradient / lipschitz[k];
        other[t] = support[k * area + t % area] ? value : 0.0;
    }
    __syncthreads();
    if (zero_mean) {
        for (int c = threadIdx.x; c < CH; c += blockDim.x) {
            double total = 0.0;
            int inside = 0;
            for (int t = 0; t < area; ++t) { total += other[c * area + t]; inside += support[k * area + t]; }
            for (int t = 0; t < area; ++t) if (support[k * area + t]) other[c * area + t] -= total / inside;
        }
        __syncthreads();
    }
    double energy = 0.0;
    for (int t = threadIdx.x; t < TAPS; t += blockDim.x) {
        if (nonnegative && other[t] < 0.0) other[t] = 0.0;
        energy += other[t] * other[t];
    }
    energy = warp_sum(energy);
    if ((threadIdx.x & 31) == 0) sums[threadIdx.x >> 5] = energy;
    __syncthreads();
    if (threadIdx.x == 0) {
        double total = 0.0;
        for (int w = 0; w < (int)(blockDim.x >> 5); ++w) total += sums[w];
        sums[32] = total > 1.0 ? rsqrt(total) : 1.0;
        *done = 0;
    }
    __syncthreads();
    for (int t = threadIdx.x; t < TAPS; t += blockDim.x) filters[(i64)k * TAPS + t] = other[t] * sums[32];
}
