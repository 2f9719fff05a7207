// The working set and coordinate descent on it. Codes lie in buckets at least (filter size − 1) wide, each with room for
// `capacity` codes, so that buckets of one of four colours never touch and a warp can own a bucket: its codes are visited
// in order, and the answer does not depend on which warp came first. MAPPED (penalty by position) and NONNEGATIVE are
// given when compiled. A code is filter << 12 | row in bucket << shift | column in bucket.

__device__ __forceinline__ i64 bucket_start(const int* g, int n, int bucket) {
    return ((i64)n * g[G_NBY] * g[G_NBX] + bucket) * g[G_CAP];
}

__device__ __forceinline__ float penalty_of(const int* g, const float* __restrict__ penalty, int k, int y, int x) {
#if MAPPED
    return __ldg(penalty + ((i64)k * g[G_H] + y) * g[G_W] + x);
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
    if (bucket >= g[G_NBY] * g[G_NBX]) return;
    const int n = active[blockIdx.y], H = g[G_H], W = g[G_W], shift = g[G_SHIFT], capacity = g[G_CAP];
    int* code_of = room + (threadIdx.x >> 5) * 3 * capacity;
    float* value_of = reinterpret_cast<float*>(code_of + capacity);
    float* curvature = value_of + capacity;
    const int y0 = bucket / g[G_NBX] * g[G_BH], x0 = bucket % g[G_NBX] * g[G_BW];
    const int y1 = min(y0 + g[G_BH], H), x1 = min(x0 + g[G_BW], W);
    const i64 start = bucket_start(g, n, bucket);
    int* count_at = counts + (i64)n * g[G_NBY] * g[G_NBX] + bucket;
    const unsigned before = (1u << lane) - 1;
    const int count = *count_at;
    int kept = 0;
    for (int i0 = 0; i0 < count; i0 += 32) {
        const int i = i0 + lane;
        const float value = i < count ? values[start + i] : 0.0f;
        const unsigned alive = __ballot_sync(0xffffffffu, value != 0.0f);
        if (value != 0.0f) {
            const int to = kept + __popc(alive & before);
            code_of[to] = codes[start + i]; value_of[to] = value; curvature[to] = curvatures[start + i];
        }
        kept += __popc(alive);
    }
    __syncwarp();
    const int across = (x1 - x0 + cell - 1) / cell, cells = across * ((y1 - y0 + cell - 1) / cell);
    int total = kept;
    for (int c0 = 0; c0 < cells; c0 += 32) {
        const int c = c0 + lane;
        float top = floor_;
        int code = -1;
        if (c < cells) {
            const int ya = y0 + c / across * cell, xa = x0 + c % across * cell;
            for (int y = ya; y < min(ya + cell, y1); ++y)
                for (int x = xa; x < min(xa + cell, x1); ++x) {
                    const i64 at = ((i64)n * H + y) * W + x;
                    const float ratio = best[at];
                    if (ratio > top) { top = ratio; code = winner[at] << 12 | (y - y0) << shift | (x - x0); }
                }
        }
        for (int i = 0; i < kept; ++i) if (code_of[i] == code) code = -1;
        const unsigned fresh = __ballot_sync(0xffffffffu, code >= 0);
        const int to = total + __popc(fresh & before);
        if (code >= 0 && to < capacity) { code_of[to] = code; value_of[to] = 0.0f; }
        total = min(total + __popc(fresh), capacity);
    }
    __syncwarp();
    const int PW = g[G_PW];
    int offsets[PER_LANE];
    lane_offsets(lane, g[G_PH] * PW, PW, offsets);
    for (int i = kept; i < total; ++i) {
        const int code = code_of[i], place = code & 4095;
        const i64 base = (i64)(y0 + (place >> shift)) * PW + x0 + (place & ((1 << shift) - 1));
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
    if (bucket >= g[G_NBY] * g[G_NBX]) return;
    const int PW = g[G_PW], shift = g[G_SHIFT], y0 = bucket / g[G_NBX] * g[G_BH], x0 = bucket % g[G_NBX] * g[G_BW];
    const i64 start = bucket_start(g, n, bucket);
    const int count = counts[(i64)n * g[G_NBY] * g[G_NBX] + bucket];
    int offsets[PER_LANE];
    lane_offsets(lane, g[G_PH] * PW, PW, offsets);
    for (int i = 0; i < count; ++i) {
        const int code = codes[start + i], place = code & 4095;
        const i64 base = (i64)(y0 + (place >> shift)) * PW + x0 + (place & ((1 << shift) - 1));
        const float c = curvature_of(lane, filters, code >> 12, weights + n * weight_stride, base, offsets);
        if (lane == 0) curvatures[start + i] = c;
    }
}

// Set codes smaller than `part` of their penalty to zero. A warp a bucket.
extern "C" __global__ void
prune(const int* __restrict__ g, const int* __restrict__ active, const float* __restrict__ penalty,
      const int* __restrict__ codes, float* __restrict__ values, const int* __restrict__ counts, float part) {
    const int lane = threadIdx.x & 31, bucket = blockIdx.x * (blockDim.x >> 5) + (threadIdx.x >> 5);
    if (bucket >= g[G_NBY] * g[G_NBX]) return;
    const int n = active[blockIdx.y], shift = g[G_SHIFT], low = (1 << shift) - 1;
    const int y0 = bucket / g[G_NBX] * g[G_BH], x0 = bucket % g[G_NBX] * g[G_BW];
    const i64 start = bucket_start(g, n, bucket);
    const int count = counts[(i64)n * g[G_NBY] * g[G_NBX] + bucket];
    for (int i = lane; i < count; i += 32) {
        const int code = codes[start + i], place = code & 4095;
        const float lambda = penalty_of(g, penalty, code >> 12, y0 + (place >> shift), x0 + (place & low));
        if (fabsf(values[start + i]) < part * lambda) values[start + i] = 0.0f;
    }
}

struct Sweep {
    const int* g;
    const float *filters, *penalty, *weights;
    const int* codes;
    float* values;
    const float* curvatures;
    const int* counts;
    float *window, *moves;
    float ridge;
    int n, lane, row0, column0, rows, columns, pitch, plane;
};

// One pass over the codes of a bucket, or over its non-zeros. Returns the largest curvature · change².
__device__ float visit(const Sweep& s, const int* offsets, int row, int column, bool alive_only) {
    const int* g = s.g;
    const int shift = g[G_SHIFT], bucket = (s.row0 + row) * g[G_NBX] + s.column0 + column;
    const int count = s.counts[(i64)s.n * g[G_NBY] * g[G_NBX] + bucket];
    const i64 start = bucket_start(g, s.n, bucket);
    const int y0 = row * g[G_BH], x0 = column * g[G_BW], low = (1 << shift) - 1;
    const int y_tile = s.row0 * g[G_BH], x_tile = s.column0 * g[G_BW];
    float largest = 0.0f;
    for (int i0 = 0; i0 < count; i0 += 32) {
        const int i = i0 + s.lane;
        const int code = i < count ? s.codes[start + i] : 0;
        float value = i < count ? s.values[start + i] : 0.0f;
        const float curvature = i < count ? s.curvatures[start + i] : 0.0f;
        const float before = value;
        unsigned todo = __ballot_sync(0xffffffffu, i < count && (!alive_only || value != 0.0f));
        if (!todo) continue;
        float price = 0.0f;
        if (i < count) {
            const int place = code & 4095;
            price = penalty_of(g, s.penalty, code >> 12, y_tile + y0 + (place >> shift), x_tile + x0 + (place & low));
        }
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
            const int place = __shfl_sync(0xffffffffu, code, now) & 4095;
            const float old = __shfl_sync(0xffffffffu, value, now);
            const float signed_c = __shfl_sync(0xffffffffu, curvature, now), c = fabsf(signed_c);
            const float lambda = __shfl_sync(0xffffffffu, price, now);
            const int y = y0 + (place >> shift), x = x0 + (place & low), base = y * s.pitch + x;
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
            const float* w = s.weights + (i64)(y_tile + y) * g[G_PW] + x_tile + x;
            #pragma unroll
            for (int q = 0; q < PER_LANE; ++q) {
                const int t = s.lane + 32 * q;
                if (t < TAPS) {
                    float step = change * taps[q];
                    if (signed_c < 0.0f) {
                        const int plane = t / (FH * FW), rest = t - plane * (FH * FW);
                        step *= __ldg(w + ((i64)plane * g[G_PH] + rest / FW) * g[G_PW] + rest % FW);
                    }
                    s.window[base + offsets[q]] = met[q] + step;
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
__device__ bool stirred(const Sweep& s, int row, int column, float quiet) {
    const int y = row + s.lane / 3 - 1, x = column + s.lane % 3 - 1;
    const bool inside = s.lane < 9 && y >= 0 && y < s.rows && x >= 0 && x < s.columns;
    return __any_sync(0xffffffffu, inside && s.moves[y * s.columns + x] > quiet);
}

// One pass over the buckets of a tile, colour by colour: over all codes, or over the non-zeros of those buckets where
// something moved more than `quiet` before. Every thread returns the largest √curvature · |change|.
__device__ float sweep(const Sweep& s, const int* offsets, bool alive_only, float quiet, int* ticket, float* peak) {
    if (threadIdx.x == 0) *peak = 0.0f;
    float largest = 0.0f;
    for (int colour = 0; colour < 4; ++colour) {
        if (threadIdx.x == 0) *ticket = 0;
        __syncthreads();
        while (true) {
            int index = 0, row, column;
            if (s.lane == 0) index = atomicAdd(ticket, 1);
            index = __shfl_sync(0xffffffffu, index, 0);
            if (!of_colour(index, colour, s.rows, s.columns, &row, &column)) break;
            if (alive_only && !stirred(s, row, column, quiet * quiet)) continue;
            const float move = visit(s, offsets, row, column, alive_only);
            if (s.lane == 0) s.moves[row * s.columns + column] = move;
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
    int tile_row, tile_column;
    if (!of_colour(blockIdx.x, tile_colour, g[G_NTY], g[G_NTX], &tile_row, &tile_column)) return;
    const int PH = g[G_PH], PW = g[G_PW];
    Sweep s;
    s.g = g; s.filters = filters; s.penalty = penalty; s.codes = codes; s.values = values;
    s.curvatures = curvatures; s.counts = counts; s.window = window;
    s.ridge = ridge;
    s.n = active[blockIdx.y];
    s.weights = weights + s.n * weight_stride;
    s.lane = threadIdx.x & 31;
    s.row0 = tile_row * g[G_TBY]; s.rows = min(g[G_TBY], g[G_NBY] - s.row0);
    s.column0 = tile_column * g[G_TBX]; s.columns = min(g[G_TBX], g[G_NBX] - s.column0);
    const int y0 = s.row0 * g[G_BH], x0 = s.column0 * g[G_BW];
    const int height = min(y0 + s.rows * g[G_BH], g[G_H]) - y0 + FH - 1;
    s.pitch = min(x0 + s.columns * g[G_BW], g[G_W]) - x0 + FW - 1;
    s.plane = height * s.pitch;
    s.moves = window + CH * s.plane;
    float* mine = residual + (i64)s.n * CH * PH * PW;
    for (int i = threadIdx.x; i < CH * s.plane; i += blockDim.x) {
        const int row = i / s.pitch, c = row / height;
        window[i] = mine[((i64)c * PH + y0 + row - c * height) * PW + x0 + i - row * s.pitch];
    }
    int offsets[PER_LANE];
    lane_offsets(s.lane, s.plane, s.pitch, offsets);
    const float target = targets[s.n];
    float first = 0.0f;
    for (int pass = 0; pass < max_sweeps; ++pass) {
        first = sweep(s, offsets, false, 0.0f, &ticket, &peak);
        if (!(first >= target)) break;
        for (int again = 0; again < extra; ++again)
            if (!(sweep(s, offsets, true, 0.5f * target, &ticket, &peak) >= 0.5f * target)) break;
    }
    if (threadIdx.x == 0) max_into(moved + s.n, first);
    if (!write_back) return;
    for (int i = threadIdx.x; i < CH * s.plane; i += blockDim.x) {
        const int row = i / s.pitch, c = row / height;
        mine[((i64)c * PH + y0 + row - c * height) * PW + x0 + i - row * s.pitch] = window[i];
    }
}
