// The working set. Codes lie in buckets at least (filter size − 1) wide, each with room for
// `capacity` codes, so that buckets of one colour (four of a plane, eight of a volume) never touch and a warp can own a
// bucket: its codes are visited in order, and the answer does not depend on which warp came first. MAPPED (penalty by
// position), NONNEGATIVE and AROUND (circular signals) are given when compiled.

__device__ __forceinline__ i64 bucket_start(const int* g, int n, int bucket) {
    return ((i64)n * n_buckets(g) + bucket) * g[G_CAP];
}

__device__ __forceinline__ float penalty_of(const int* g, const float* __restrict__ penalty, int k, const Spot& at) {
#if MAPPED
    return __ldg(penalty + k * n_positions(g) + position_of(g, at));
#else
    return __ldg(penalty + k);
#endif
}

// Curvature of a code, negative where its box meets weights other than one.
__device__ float curvature_of(int lane, const float* __restrict__ filters, int k,
                              const float* __restrict__ weights, i64 base, const int* offsets) {
    float taps[PER_LANE], sum = 0.0f;
    bool plain = true;
    lane_taps(lane, filters, k, taps);
    #pragma unroll
    for (int q = 0; q < PER_LANE; ++q) {
        float w = __ldg(weights + base + offsets[q]);
        sum += w * taps[q] * taps[q];
        plain = plain && w == 1.0f;
    }
    sum = warp_sum(sum);
    return __all_sync(0xffffffffu, plain) ? sum : -sum;
}

// Drop codes that ended at zero, take the best violator of every cell in where it is not there yet, and put all in the
// order of their positions: sweeps that walk over the signal need fewer rounds. A warp a bucket.
extern "C" __global__ void
enlarge(const int* __restrict__ g, const int* __restrict__ active, const float* __restrict__ best,
        const int* __restrict__ winner, const float* __restrict__ filters, const float* __restrict__ weights,
        i64 weight_stride, int* __restrict__ codes, float* __restrict__ values, float* __restrict__ curvatures,
        int* __restrict__ counts, int cell, const float* __restrict__ floors) {
    extern __shared__ __align__(16) int room[];  // for each warp the codes, values and curvatures of its bucket
    const int lane = threadIdx.x & 31, bucket = blockIdx.x * (blockDim.x >> 5) + (threadIdx.x >> 5);
    if (bucket >= n_buckets(g)) return;
    const int n = active[blockIdx.y], capacity = g[G_CAP];
    int* code_of = room + (threadIdx.x >> 5) * 3 * capacity;
    float* value_of = reinterpret_cast<float*>(code_of + capacity);
    float* curvature = value_of + capacity;
    const Spot from = corner_of(g, bucket);
    const Spot to = {min(from.z + g[G_BD], g[G_D]), min(from.y + g[G_BH], g[G_H]), min(from.x + g[G_BW], g[G_W])};
    const i64 start = bucket_start(g, n, bucket);
    int* count_at = counts + (i64)n * n_buckets(g) + bucket;
    const unsigned before = (1u << lane) - 1;
    const int count = *count_at;
    int kept = 0;
    for (int i0 = 0; i0 < count; i0 += 32) {
        const int i = i0 + lane;
        const float value = i < count ? values[start + i] : 0.0f;
        const unsigned alive = __ballot_sync(0xffffffffu, value != 0.0f);
        if (value != 0.0f) {
            const int slot = kept + __popc(alive & before);
            code_of[slot] = codes[start + i]; value_of[slot] = value; curvature[slot] = curvatures[start + i];
        }
        kept += __popc(alive);
    }
    __syncwarp();
    const int across = (to.x - from.x + cell - 1) / cell, down = (to.y - from.y + cell - 1) / cell;
    const int cells = across * down * ((to.z - from.z + cell - 1) / cell);
    int total = kept;
    for (int c0 = 0; c0 < cells; c0 += 32) {
        const int c = c0 + lane;
        float top = floors[n];
        int code = -1;
        if (c < cells) {
            const int line = c / across;
            const int za = from.z + line / down * cell, ya = from.y + line % down * cell, xa = from.x + c % across * cell;
            for (int z = za; z < min(za + cell, to.z); ++z)
                for (int y = ya; y < min(ya + cell, to.y); ++y)
                    for (int x = xa; x < min(xa + cell, to.x); ++x) {
                        const i64 at = n * n_positions(g) + position_of(g, {z, y, x});
                        const float ratio = best[at];
                        if (ratio > top) { top = ratio; code = pack(g, winner[at], z - from.z, y - from.y, x - from.x); }
                    }
        }
        for (int i = 0; i < kept; ++i) if (code_of[i] == code) code = -1;
        const unsigned fresh = __ballot_sync(0xffffffffu, code >= 0);
        const int slot = total + __popc(fresh & before);
        if (code >= 0 && slot < capacity) { code_of[slot] = code; value_of[slot] = 0.0f; }
        total = min(total + __popc(fresh), capacity);
    }
    __syncwarp();
    int offsets[PER_LANE];
    lane_offsets(lane, (int)padded_volume(g), g[G_PH] * g[G_PW], g[G_PW], offsets);
    for (int i = kept; i < total; ++i) {
        const int code = code_of[i];
        const i64 base = base_of(g, spot_of(g, code, from));
        const float c = curvature_of(lane, filters, code >> 12, weights + n * weight_stride, base, offsets);
        if (lane == 0) curvature[i] = c;
    }
    __syncwarp();
    for (int i = lane; i < total; i += 32) {
        const int code = code_of[i];
        const unsigned key = (unsigned)(code & 4095) << 19 | (unsigned)(code >> 12);
        int rank = 0;
        for (int j = 0; j < total; ++j) {
            const int other = code_of[j];
            rank += ((unsigned)(other & 4095) << 19 | (unsigned)(other >> 12)) < key;
        }
        codes[start + rank] = code;
        values[start + rank] = value_of[i];
        curvatures[start + rank] = curvature[i];
    }
    if (lane == 0) *count_at = total;
}

// Curvatures of codes that were given, not found. A warp a bucket.
extern "C" __global__ void
measure(const int* __restrict__ g, const float* __restrict__ filters, const float* __restrict__ weights,
        i64 weight_stride, const int* __restrict__ codes, const int* __restrict__ counts,
        float* __restrict__ curvatures) {
    const int lane = threadIdx.x & 31, bucket = blockIdx.x * (blockDim.x >> 5) + (threadIdx.x >> 5), n = blockIdx.y;
    if (bucket >= n_buckets(g)) return;
    const Spot corner = corner_of(g, bucket);
    const i64 start = bucket_start(g, n, bucket);
    const int count = counts[(i64)n * n_buckets(g) + bucket];
    int offsets[PER_LANE];
    lane_offsets(lane, (int)padded_volume(g), g[G_PH] * g[G_PW], g[G_PW], offsets);
    for (int i = 0; i < count; ++i) {
        const int code = codes[start + i];
        const i64 base = base_of(g, spot_of(g, code, corner));
        const float c = curvature_of(lane, filters, code >> 12, weights + n * weight_stride, base, offsets);
        if (lane == 0) curvatures[start + i] = c;
    }
}

// Set codes smaller than `part` of their penalty to zero. A warp a bucket.
extern "C" __global__ void
prune(const int* __restrict__ g, const int* __restrict__ active, const float* __restrict__ penalty,
      const int* __restrict__ codes, float* __restrict__ values, const int* __restrict__ counts, float part) {
    const int lane = threadIdx.x & 31, bucket = blockIdx.x * (blockDim.x >> 5) + (threadIdx.x >> 5);
    if (bucket >= n_buckets(g)) return;
    const int n = active[blockIdx.y];
    const Spot corner = corner_of(g, bucket);
    const i64 start = bucket_start(g, n, bucket);
    const int count = counts[(i64)n * n_buckets(g) + bucket];
    for (int i = lane; i < count; i += 32) {
        const int code = codes[start + i];
        const float lambda = penalty_of(g, penalty, code >> 12, spot_of(g, code, corner));
        if (fabsf(values[start + i]) < part * lambda) values[start + i] = 0.0f;
    }
}
