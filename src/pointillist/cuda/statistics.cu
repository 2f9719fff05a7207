// The dictionary's statistics from sparse codes, and the sweep over the filters. Codes are sorted by signal and position;
// sums are in float64 and added atomically, so the last bits may differ from run to run.

#define SPAN ((2 * FD - 1) * (2 * FH - 1) * (2 * FW - 1))  // shifts of two filters that meet

// C_kl for k ≤ l.
template <typename T>
__device__ __forceinline__ T* pair_block(T* pairs, int K, int low, int high) {
    return pairs + ((i64)low * K - (i64)low * (low - 1) / 2 + high - low) * SPAN;
}

struct Place { int n, k; Spot at; };

__device__ __forceinline__ Place place_of(const int* g, const int* signal, const int* filter, const int* position, int i) {
    Place p;
    const int line = position[i] / g[G_W];
    p.n = signal[i]; p.k = filter[i];
    p.at = {line / g[G_H], line % g[G_H], position[i] - line * g[G_W]};
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
    double* at = imputed + p.n * CH * padded_volume(g) + base_of(g, p.at);
    for (int t = lane; t < TAPS; t += 32)
        atomicAdd(at + tap_offset(t, padded_volume(g), g[G_PH] * g[G_PW], g[G_PW]),
                  (double)values[i] * (double)__ldg(filters + (i64)p.k * TAPS + t));
}

// linear[k] += weight · z · (the box of the imputed signal that the code meets), a warp a code.
extern "C" __global__ void
add_boxes(const int* __restrict__ g, int count, const int* __restrict__ signal, const int* __restrict__ filter,
          const int* __restrict__ position, const float* __restrict__ values, const double* __restrict__ weights,
          const double* __restrict__ imputed, double* __restrict__ linear) {
    const int lane = threadIdx.x & 31, i = blockIdx.x * (blockDim.x >> 5) + (threadIdx.x >> 5);
    if (i >= count) return;
    const Place p = place_of(g, signal, filter, position, i);
    const double factor = weights[p.n] * (double)values[i];
    const double* at = imputed + p.n * CH * padded_volume(g) + base_of(g, p.at);
    for (int t = lane; t < TAPS; t += 32)
        atomicAdd(linear + (i64)p.k * TAPS + t, factor * at[tap_offset(t, padded_volume(g), g[G_PH] * g[G_PW], g[G_PW])]);
}

// pairs[low ≤ high][shift of high from low] += product, for filters k and l with l shifted by (dz, dy, dx) from k.
__device__ __forceinline__ void
add_pair(const int* g, double* pairs, int k, int l, int dz, int dy, int dx, double product, bool itself) {
    int at = ((dz + FD - 1) * (2 * FH - 1) + dy + FH - 1) * (2 * FW - 1) + dx + FW - 1;
    if (k > l) { const int swap = k; k = l; l = swap; at = SPAN - 1 - at; }
    double* block = pair_block(pairs, g[G_K], k, l);
    atomicAdd(block + at, product);
    if (k == l && !itself) atomicAdd(block + SPAN - 1 - at, product);
}

// pairs[k ≤ l][shift of l from k] += weight · z_k z_l for codes closer than a filter, each pair once; a warp a code.
// rows[(n · D + z) · H + y] and the next say where the codes of a row begin and end. AROUND a circle two codes meet at
// every shift that leads from one to the other.
extern "C" __global__ void
add_pairs(const int* __restrict__ g, int count, const int* __restrict__ signal, const int* __restrict__ filter,
          const int* __restrict__ position, const float* __restrict__ values, const double* __restrict__ weights,
          const int* __restrict__ rows, double* __restrict__ pairs) {
    const int lane = threadIdx.x & 31, i = blockIdx.x * (blockDim.x >> 5) + (threadIdx.x >> 5);
    if (i >= count) return;
    const Place p = place_of(g, signal, filter, position, i);
    const double mine = weights[p.n] * (double)values[i];
    const int D = g[G_D], H = g[G_H], W = g[G_W];
    const int* mine_of = rows + (i64)p.n * D * H;
    for (int dz = 0; dz < FD; ++dz) {
        if (!AROUND && p.at.z + dz >= D) break;
        // Of the code's own layer only the rows below, of its own row only the codes behind: each pair once.
        for (int dy = dz ? 1 - FH : 0; dy < FH; ++dy) {
            const int y = p.at.y + dy;
            if (!AROUND && (y < 0 || y >= H)) continue;
            const int line = AROUND ? (p.at.z + dz) % D * H + (y + H) % H : (p.at.z + dz) * H + y;
            const int begin = mine_of[line], end = mine_of[line + 1];
            for (int turn = AROUND ? -1 : 0; turn <= (AROUND ? 1 : 0); ++turn) {
                const bool own = dz == 0 && dy == 0;
                if (own && turn < 0) continue;
                for (int j = (own && turn == 0 ? i : begin) + lane; j < end; j += 32) {
                    const int dx = position[j] - line * W + turn * W - p.at.x;
                    if (dx >= FW) break;
                    if (dx <= -FW) continue;
                    add_pair(g, pairs, p.k, filter[j], dz, dy, dx, mine * (double)values[j], i == j);
                }
            }
        }
    }
}

// One step of the projected block coordinate descent, for filter k: block l computes (C_kl d_l), the last block to finish
// adds them up, steps and projects. `partial` is (K, TAPS), `done` starts from zero and is left at zero.
extern "C" __global__ void
step_filter(int K, int k, const double* __restrict__ pairs, const double* __restrict__ linear,
            const double* __restrict__ lipschitz, const unsigned char* __restrict__ support, int zero_mean,
            int nonnegative, double* filters, double* partial, int* done) {
    extern __shared__ __align__(16) double block[];  // (SPAN), then `other` (TAPS)
    double* other = block + SPAN;
    const int span = 2 * FW - 1, l = blockIdx.x;
    __shared__ double sums[33];
    __shared__ bool last;
    if (!(lipschitz[k] > 0.0)) return;
    const double* from = pair_block(pairs, K, min(k, l), max(k, l));
    // C_kl(δ) = C_lk(−δ): the block of an earlier filter is met mirrored.
    for (int i = threadIdx.x; i < SPAN; i += blockDim.x) block[l >= k ? i : SPAN - 1 - i] = from[i];
    for (int t = threadIdx.x; t < TAPS; t += blockDim.x) other[t] = filters[(i64)l * TAPS + t];
    __syncthreads();
    for (int t = threadIdx.x; t < TAPS; t += blockDim.x) {
        const int c = t / BOX, z = t % BOX / AREA, y = t % AREA / FW, x = t % FW;
        double sum = 0.0;
        for (int w = 0; w < FD; ++w)
            for (int v = 0; v < FH; ++v) {
                // Samples y of filter k and v of filter l meet where l lies y − v further than k.
                const double* shifts = block + ((z - w + FD - 1) * (2 * FH - 1) + y - v + FH - 1) * span + x + FW - 1;
                const double* taps = other + c * BOX + w * AREA + v * FW;
                for (int u = 0; u < FW; ++u) sum += shifts[-u] * taps[u];
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
        other[t] = support[k * BOX + t % BOX] ? value : 0.0;
    }
    __syncthreads();
    if (zero_mean) {
        for (int c = threadIdx.x; c < CH; c += blockDim.x) {
            double total = 0.0;
            int inside = 0;
            for (int t = 0; t < BOX; ++t) { total += other[c * BOX + t]; inside += support[k * BOX + t]; }
            for (int t = 0; t < BOX; ++t) if (support[k * BOX + t]) other[c * BOX + t] -= total / inside;
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
