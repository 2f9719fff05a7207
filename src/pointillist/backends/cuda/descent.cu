// The working set and coordinate descent on it. Codes lie in buckets at least (filter size − 1) wide, each with room for
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
        int* __restrict__ counts, int cell, float floor_) {
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
        float top = floor_;
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

// A tile being swept over: its first bucket (`corner`) and how many it has each way (`field`), and the strides of its
// window of the residual.
struct Sweep {
    const int* g;
    const float *filters, *penalty, *weights;
    const int* codes;
    float* values;
    const float* curvatures;
    const int* counts;
    float *window, *moves;
    float ridge;
    int n, lane, pitch, plane, volume;
    Spot corner, field;
    Spot paired, length;  // AROUND: buckets that parity tells apart; the circle where the window holds all of it, 0 elsewhere
};

#if AROUND
// The other copy of a sample in the window, −1 where it has none.
__device__ __forceinline__ int copy_of(int at, int length, int size) {
    if (length == 0) return -1;
    return at >= length ? at - length : at < size - 1 ? at + length : -1;
}

// Whether a filter that begins at `at` meets samples with another copy.
__device__ __forceinline__ bool meets_seam(int at, int length, int size) {
    return length && (at < size - 1 || at + size > length);
}

// Write sample t of the filter that begins at `at` to its other copies.
__device__ void write_copies(const Sweep& s, const Spot& at, int t, float value) {
    const int z = at.z + t % BOX / AREA, y = at.y + t % AREA / FW, x = at.x + t % FW;
    const int oz = copy_of(z, s.length.z, FD), oy = copy_of(y, s.length.y, FH), ox = copy_of(x, s.length.x, FW);
    float* from = s.window + t / BOX * s.volume;
    for (int which = 1; which < 8; ++which) {
        const int cz = which & 4 ? oz : z, cy = which & 2 ? oy : y, cx = which & 1 ? ox : x;
        if (cz >= 0 && cy >= 0 && cx >= 0) from[cz * s.plane + cy * s.pitch + cx] = value;
    }
}
#endif

// One pass over the codes of a bucket, or over its non-zeros. Returns the largest curvature · change².
__device__ float visit(const Sweep& s, const int* offsets, const Spot& which, bool alive_only) {
    const int* g = s.g;
    const int bucket = bucket_number(g, s.corner.z + which.z, s.corner.y + which.y, s.corner.x + which.x);
    const int count = s.counts[(i64)s.n * n_buckets(g) + bucket];
    const i64 start = bucket_start(g, s.n, bucket);
    const Spot inside = {which.z * g[G_BD], which.y * g[G_BH], which.x * g[G_BW]};  // in the tile
    float largest = 0.0f;
    for (int i0 = 0; i0 < count; i0 += 32) {
        const int i = i0 + s.lane;
        const int code = i < count ? s.codes[start + i] : 0;
        float value = i < count ? s.values[start + i] : 0.0f;
        const float curvature = i < count ? s.curvatures[start + i] : 0.0f;
        const float before = value;
        unsigned todo = __ballot_sync(0xffffffffu, i < count && (!alive_only || value != 0.0f));
        if (!todo) continue;
        const Spot at = spot_of(g, code, inside);
        const int own = at.z * s.plane + at.y * s.pitch + at.x;
        float price = 0.0f;
        if (i < count) price = penalty_of(g, s.penalty, code >> 12, spot_of(g, code, corner_of(g, bucket)));
        float next[PER_LANE];
        int from = __ffs(todo) - 1;
        lane_taps(s.lane, s.filters, __shfl_sync(0xffffffffu, code, from) >> 12, next);
        while (todo) {
            const int now = from;
            float taps[PER_LANE];
            #pragma unroll
            for (int q = 0; q < PER_LANE; ++q) taps[q] = next[q];
            todo &= todo - 1;
            if (todo) {  // the next filter is on its way while this one is used
                from = __ffs(todo) - 1;
                lane_taps(s.lane, s.filters, __shfl_sync(0xffffffffu, code, from) >> 12, next);
            }
            const int base = __shfl_sync(0xffffffffu, own, now);
            const float old = __shfl_sync(0xffffffffu, value, now);
            const float signed_c = __shfl_sync(0xffffffffu, curvature, now), c = fabsf(signed_c);
            const float lambda = __shfl_sync(0xffffffffu, price, now);
            float met[PER_LANE], slope = 0.0f;
            #pragma unroll
            for (int q = 0; q < PER_LANE; ++q) {
                met[q] = s.window[base + offsets[q]];
                slope = fmaf(met[q], taps[q], slope);
            }
            const float target = fmaf(old, c, warp_sum(slope));
            float fresh = 0.0f;
            if (target > lambda) fresh = __fdividef(target - lambda, c + s.ridge);
#if !NONNEGATIVE
            else if (target < -lambda) fresh = __fdividef(target + lambda, c + s.ridge);
#endif
            if (fresh == old) continue;
            const float change = old - fresh;
#if AROUND
            const Spot begin = spot_of(g, __shfl_sync(0xffffffffu, code, now), inside);
            const bool seam = meets_seam(begin.z, s.length.z, FD) || meets_seam(begin.y, s.length.y, FH)
                              || meets_seam(begin.x, s.length.x, FW);
#endif
            const float* w = s.weights;
            if (signed_c < 0.0f) w += base_of(g, spot_of(g, __shfl_sync(0xffffffffu, code, now), corner_of(g, bucket)));
            #pragma unroll
            for (int q = 0; q < PER_LANE; ++q) {
                const int t = s.lane + 32 * q;
                if (t < TAPS) {
                    float step = change * taps[q];
                    if (signed_c < 0.0f)
                        step *= __ldg(w + tap_offset(t, padded_volume(g), g[G_PH] * g[G_PW], g[G_PW]));
                    s.window[base + offsets[q]] = met[q] + step;
#if AROUND
                    if (seam) write_copies(s, begin, t, met[q] + step);
#endif
                }
            }
            __syncwarp();
            if (s.lane == now) value = fresh;
            largest = fmaxf(largest, change * change * c);
        }
        if (i < count && value != before) s.values[start + i] = value;
    }
    return largest;
}

// Whether a code of the bucket or of one beside it moved more than `quiet` when it was last visited.
__device__ bool stirred(const Sweep& s, const Spot& which, float quiet) {
    int z = which.z + s.lane / 9 - 1, y = which.y + s.lane / 3 % 3 - 1, x = which.x + s.lane % 3 - 1;
#if AROUND
    if (s.length.z) z = (z + s.field.z) % s.field.z;
    if (s.length.y) y = (y + s.field.y) % s.field.y;
    if (s.length.x) x = (x + s.field.x) % s.field.x;
#endif
    const bool inside = s.lane < 27 && z >= 0 && z < s.field.z && y >= 0 && y < s.field.y && x >= 0 && x < s.field.x;
    return __any_sync(0xffffffffu, inside && s.moves[(z * s.field.y + y) * s.field.x + x] > quiet);
}

// One pass over the buckets of a tile, colour by colour: over all codes, or over the non-zeros of those buckets where
// something moved more than `quiet` before. Every thread returns the largest √curvature · |change|.
__device__ float sweep(const Sweep& s, const int* offsets, bool alive_only, float quiet, int* ticket, float* peak) {
    if (threadIdx.x == 0) *peak = 0.0f;
    float largest = 0.0f;
#if AROUND
    const int colours = 64;
#else
    const int colours = s.field.z > 1 ? 8 : 4;
#endif
    for (int colour = 0; colour < colours; ++colour) {
#if AROUND
        Spot first;
        if (!of_class(0, colour, s.field, s.paired, &first)) continue;
#endif
        if (threadIdx.x == 0) *ticket = 0;
        __syncthreads();
        while (true) {
            int index = 0;
            Spot which;
            if (s.lane == 0) index = atomicAdd(ticket, 1);
            index = __shfl_sync(0xffffffffu, index, 0);
#if AROUND
            if (!of_class(index, colour, s.field, s.paired, &which)) break;
#else
            if (!of_colour(index, colour, s.field.z, s.field.y, s.field.x, &which)) break;
#endif
            if (alive_only && !stirred(s, which, quiet * quiet)) continue;
            const float move = visit(s, offsets, which, alive_only);
            if (s.lane == 0) s.moves[(which.z * s.field.y + which.y) * s.field.x + which.x] = move;
            largest = fmaxf(largest, move);
        }
        __syncthreads();
    }
    if (s.lane == 0) max_into(peak, largest);
    __syncthreads();
    const float found = sqrtf(*peak);
    __syncthreads();
    return found;
}

// Where sample i of a tile's window lies in the padded signal, relative to the tile's first.
__device__ __forceinline__ i64 window_offset(const int* g, const Sweep& s, int depth, int height, int i) {
    const int row = i / s.pitch, layer = row / height, c = layer / depth;
    return (((i64)c * g[G_PD] + layer - c * depth) * g[G_PH] + row - layer * height) * g[G_PW] + i - row * s.pitch;
}

// Sweeps over the tiles of one colour, a block a tile with its part of the residual in shared memory. Each sweep over the
// working set is followed by up to `extra` over the non-zeros, until the largest move falls below the signal's target.
// `ridge` adds ½ ridge z² to the objective.
extern "C" __global__ void __launch_bounds__(512, PER_LANE <= 5 ? 2 : 1)
descend(const int* __restrict__ g, const int* __restrict__ active, float* __restrict__ residual,
        const float* __restrict__ filters, const float* __restrict__ penalty, const float* __restrict__ weights,
        i64 weight_stride, const int* __restrict__ codes, float* __restrict__ values,
        const float* __restrict__ curvatures, const int* __restrict__ counts, const float* __restrict__ targets,
        float* __restrict__ moved, float ridge, int tile_colour, int max_sweeps, int extra, int write_back) {
    extern __shared__ __align__(16) float window[];
    __shared__ int ticket;
    __shared__ float peak;
    Spot tile;
#if AROUND
    const Spot tiles = {g[G_NTZ], g[G_NTY], g[G_NTX]};
    if (!of_class(blockIdx.x, tile_colour, tiles, {g[G_PTZ], g[G_PTY], g[G_PTX]}, &tile)) return;
#else
    if (!of_colour(blockIdx.x, tile_colour, g[G_NTZ], g[G_NTY], g[G_NTX], &tile)) return;
#endif
    Sweep s;
    s.g = g; s.filters = filters; s.penalty = penalty; s.codes = codes; s.values = values;
    s.curvatures = curvatures; s.counts = counts; s.window = window;
    s.ridge = ridge;
    s.n = active[blockIdx.y];
    s.weights = weights + s.n * weight_stride;
    s.lane = threadIdx.x & 31;
    s.corner = {tile.z * g[G_TBZ], tile.y * g[G_TBY], tile.x * g[G_TBX]};
    s.field = {min(g[G_TBZ], g[G_NBZ] - s.corner.z), min(g[G_TBY], g[G_NBY] - s.corner.y),
               min(g[G_TBX], g[G_NBX] - s.corner.x)};
    const Spot first = {s.corner.z * g[G_BD], s.corner.y * g[G_BH], s.corner.x * g[G_BW]};  // position
    const int depth = min(s.field.z * g[G_BD], g[G_D] - first.z) + FD - 1;
    const int height = min(s.field.y * g[G_BH], g[G_H] - first.y) + FH - 1;
    s.pitch = min(s.field.x * g[G_BW], g[G_W] - first.x) + FW - 1;
    s.plane = height * s.pitch;
    const int volume = depth * s.plane;
    s.volume = volume;
#if AROUND
    s.length = {tiles.z == 1 && FD > 1 ? g[G_D] : 0, tiles.y == 1 && FH > 1 ? g[G_H] : 0,
                tiles.x == 1 && FW > 1 ? g[G_W] : 0};
    s.paired = {s.length.z ? g[G_PBZ] : s.field.z, s.length.y ? g[G_PBY] : s.field.y,
                s.length.x ? g[G_PBX] : s.field.x};
#endif
    s.moves = window + CH * volume;
    float* mine = residual + s.n * CH * padded_volume(g) + base_of(g, first);
    for (int i = threadIdx.x; i < CH * volume; i += blockDim.x) window[i] = mine[window_offset(g, s, depth, height, i)];
    int offsets[PER_LANE];
    lane_offsets(s.lane, volume, s.plane, s.pitch, offsets);
    const float target = targets[s.n];
    float largest = 0.0f;
    for (int pass = 0; pass < max_sweeps; ++pass) {
        largest = sweep(s, offsets, false, 0.0f, &ticket, &peak);
        if (!(largest >= target)) break;
        for (int again = 0; again < extra; ++again)
            if (!(sweep(s, offsets, true, 0.5f * target, &ticket, &peak) >= 0.5f * target)) break;
    }
    if (threadIdx.x == 0) max_into(moved + s.n, largest);
    if (!write_back) return;
    for (int i = threadIdx.x; i < CH * volume; i += blockDim.x) mine[window_offset(g, s, depth, height, i)] = window[i];
}
