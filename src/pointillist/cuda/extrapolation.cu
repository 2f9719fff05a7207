// The best step in the span of the last moves, after some sweeps over the non-zeros: see kernels/sweep.py, which does the
// same on the host. Sums are taken in an order that does not depend on which warp was first. `descend` alternates both.

#define MEMORY 3
#define SUMS (MEMORY + MEMORY * (MEMORY + 1) / 2)
#define MOST_WARPS 16
#define SWEEPS 2  // in a move: combining takes about as long as one

// What a block keeps of the last moves: how x − Dz changed by each, in windows of `samples`, and how the codes did, in
// `slots`. Behind the steps lies the residual while steps are worked on in its place, behind the moves the combined one.
struct History {
    float *steps, *moves;
    i64 samples, slots;
    int newest, held;
};

struct Board {
    float parts[MOST_WARPS][SUMS];
    double sums[SUMS];
    float factors[MEMORY];
};

// Work on all buckets of a tile, colour by colour, each by a warp that its number names.
template <class Work> __device__ void in_colours(const Tile& s, Work work) {
    const int warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
    for (int colour = 0; colour < COLOURS(s); ++colour) {
        Spot which;
        if (!member(s, 0, colour, &which)) continue;
        for (int i = warp; member(s, i, colour, &which); i += warps) work(bucket_at(s, which));
        __syncthreads();
    }
}

// The same where buckets have nothing to do with each other.
template <class Work> __device__ void in_turn(const Tile& s, Work work) {
    const int count = s.field.z * s.field.y * s.field.x;
    for (int i = threadIdx.x >> 5; i < count; i += blockDim.x >> 5) {
        const int line = i / s.field.x;
        work(bucket_at(s, {line / s.field.y, line % s.field.y, i - line * s.field.x}));
    }
    __syncthreads();
}

// Sums over all threads of the block, into board->sums.
template <int COUNT> __device__ void add_up(const Tile& s, Board* board, const float (&mine)[COUNT]) {
    #pragma unroll
    for (int j = 0; j < COUNT; ++j) {
        const float part = warp_sum(mine[j]);
        if ((threadIdx.x & 31) == 0) board->parts[threadIdx.x >> 5][j] = part;
    }
    __syncthreads();
    if (threadIdx.x < COUNT) {
        double total = 0.0;
        for (int w = 0; w < blockDim.x >> 5; ++w) total += board->parts[w][threadIdx.x];
        board->sums[threadIdx.x] = total;
    }
    __syncthreads();
}

__device__ __forceinline__ float* step_of(const History& h, int m) {
    return h.steps + m * h.samples;
}

// Before sweeps: their move begins as the values' negatives.
__device__ __noinline__ void begin_move(const Tile& s, const History& h) {
    const int lane = threadIdx.x & 31;
    in_turn(s, [&](const Bucket& b) {
        float* move = h.moves + h.newest * h.slots + (i64)b.local * s.g[G_CAP];
        for (int i = lane; i < b.count; i += 32) move[i] = -s.values[b.start + i];
    });
}

// Put the residual aside, to make room for a step in its place.
__device__ void put_aside(const Tile& s, const History& h) {
    float* aside = step_of(h, MEMORY);
    for (int i = threadIdx.x; i < CH * s.volume; i += blockDim.x) { aside[i] = window[i]; window[i] = 0.0f; }
    __syncthreads();
}

// Let some lanes' codes add multiples of their filters to a signal like the window, or to the window at its address, one
// after the other. `inside` is where their bucket begins in the tile.
template <class To>
__device__ __noinline__ void add_filters(const Tile& s, To to, Spot inside, unsigned which, int code, float amount) {
    const int lane = held((int)threadIdx.x & 31);
    const bool last = IS_LAST_TAP(lane);
    unsigned offsets[PER_LANE];
    window_offsets(s, lane, offsets);
    const Spot at = spot_of(s.g, code, inside);
    const unsigned own = own_offset(s, at);
    const int filter = held((code >> 12) * (32 * PER_LANE));
    const float* filters = filters_of(s, lane);
#if AROUND
    const unsigned seams = __ballot_sync(0xffffffffu, meets_seams(s, at));
#endif
    int now = __ffs(which) - 1;
    const auto one = [&](float (&taps)[PER_LANE], float (&next)[PER_LANE]) {
        const unsigned base = __shfl_sync(0xffffffffu, own, now), rest = which & (which - 1);
        const float times = __shfl_sync(0xffffffffu, amount, now);
        float met[PER_LANE];
        #pragma unroll
        for (int q = 0; q < PER_LANE; ++q) met[q] = sample_at(to, base + offsets[q]);
        const int after = __ffs(rest) - 1;
        padded_taps(filters, __shfl_sync(0xffffffffu, filter, after), next);
        #pragma unroll
        for (int q = 0; q < PER_LANE; ++q)
            if (IS_TAP(q, last)) put_sample(to, base + offsets[q], fmaf(times, taps[q], met[q]));
        __syncwarp();
#if AROUND
        if (seams & (which ^ rest)) repeat(s, place_of(to), spot_of(s.g, __shfl_sync(0xffffffffu, code, now), inside));
        __syncwarp();
#endif
        now = after; which = rest;
    };
    float even[PER_LANE], odd[PER_LANE];
    padded_taps(filters, __shfl_sync(0xffffffffu, filter, now), even);
    while (true) {
        one(even, odd);
        if (!which) break;
        one(odd, even);
        if (!which) break;
    }
}

// Finish the newest move, and take codes that are zero out of all moves: they stay there until a sweep says otherwise. The
// newest step is then in the window. The first sums are what the moves do to the penalties, the others products of moves, which only a ridge makes count.
__device__ void gather_moves(const Tile& s, const History& h, float (&sums)[SUMS]) {
    in_colours(s, [&](const Bucket& b) {
        for (int i0 = 0; i0 < b.count; i0 += 32) {
            const int i = i0 + (threadIdx.x & 31);
            const bool mine = i < b.count;
            const int code = mine ? s.codes[b.start + i] : 0;
            const float value = mine ? s.values[b.start + i] : 0.0f;
            const float slope = value != 0.0f ? copysignf(price_of(s, b, code), value) + s.ridge * value : 0.0f;
            float moves[MEMORY], newest = 0.0f;
            #pragma unroll
            for (int m = 0; m < MEMORY; ++m) {
                moves[m] = 0.0f;
                if (m >= h.held) continue;
                float* at = h.moves + m * h.slots + (i64)b.local * s.g[G_CAP] + i;
                const float moved = mine ? *at + (m == h.newest ? value : 0.0f) : 0.0f;
                const bool left = value == 0.0f && moved != 0.0f;
                moves[m] = left ? 0.0f : moved;
                if (mine && (left || m == h.newest)) *at = moves[m];
                const unsigned lost = __ballot_sync(0xffffffffu, left);
                if (m == h.newest) newest = moves[m];
                else if (lost) add_filters(s, step_of(h, m), b.inside, lost, code, moved);
                sums[m] = fmaf(slope, moves[m], sums[m]);
            }
            const unsigned moving = __ballot_sync(0xffffffffu, newest != 0.0f);
            if (moving) add_filters(s, window_address(), b.inside, moving, code, -newest);
            if (s.ridge > 0.0f) {
                int j = MEMORY;
                #pragma unroll
                for (int m = 0; m < MEMORY; ++m)
                    #pragma unroll
                    for (int n = 0; n <= m; ++n, ++j) sums[j] = fmaf(s.ridge * moves[m], moves[n], sums[j]);
            }
        }
    });
}

// Slopes of the objective along the steps, and products of the steps; the newest joins the others.
__device__ void multiply_steps(const Tile& s, const History& h, float (&sums)[SUMS]) {
    const float* weights = s.weights + s.first;
    const float* aside = step_of(h, MEMORY);
    float* newest = step_of(h, h.newest);
    each_sample(s, [&](int i, i64 j, bool counted) {
        const float step = window[i];
        newest[i] = step;
        if (!counted) return;
        const float left = aside[i], weight = __ldg(weights + j);
        float steps[MEMORY];
        #pragma unroll
        for (int m = 0; m < MEMORY; ++m) {
            steps[m] = m < h.held && m != h.newest ? step_of(h, m)[i] : 0.0f;
            if (m == h.newest) steps[m] = step;
            sums[m] = fmaf(left, steps[m], sums[m]);
        }
        int k = MEMORY;
        #pragma unroll
        for (int m = 0; m < MEMORY; ++m)
            #pragma unroll
            for (int n = 0; n <= m; ++n, ++k) sums[k] = fmaf(weight * steps[m], steps[n], sums[k]);
    });
}

// Minimise ½ cᵀ H c + gᵀ c, a little regularised; steps of no length get nothing. By one thread.
__device__ void best_factors(Board* board) {
    double system[MEMORY][MEMORY], factors[MEMORY], scales[MEMORY], largest = 0.0;
    for (int m = 0, j = MEMORY; m < MEMORY; ++m)
        for (int n = 0; n <= m; ++n, ++j) system[m][n] = system[n][m] = board->sums[j];
    for (int m = 0; m < MEMORY; ++m) largest = fmax(largest, system[m][m]);
    for (int m = 0; m < MEMORY; ++m) {
        scales[m] = system[m][m] > 1e-12 * largest ? rsqrt(system[m][m]) : 0.0;
        factors[m] = -board->sums[m] * scales[m];
    }
    for (int m = 0; m < MEMORY; ++m)
        for (int n = 0; n < MEMORY; ++n) system[m][n] = m == n ? 1 + 1e-6 : system[m][n] * scales[m] * scales[n];
    for (int m = 0; m < MEMORY; ++m)  // positive definite: no pivots are needed
        for (int n = m + 1; n < MEMORY; ++n) {
            const double ratio = system[n][m] / system[m][m];
            for (int k = m; k < MEMORY; ++k) system[n][k] -= ratio * system[m][k];
            factors[n] -= ratio * factors[m];
        }
    for (int m = MEMORY - 1; m >= 0; --m) {
        for (int k = m + 1; k < MEMORY; ++k) factors[m] -= system[m][k] * factors[k];
        factors[m] /= system[m][m];
        const float factor = (float)(factors[m] * scales[m]);
        board->factors[m] = isfinite(factor) ? factor : 0.0f;
    }
}

// The combined move of every code, and the combined step in the window; codes that would change their sign stop at zero.
// Returns whether any did, and adds what happens to the penalties to `change`.
__device__ bool combine(const Tile& s, const History& h, const Board* board, float* change) {
    each_sample(s, [&](int i, i64, bool) {
        float sum = board->factors[h.newest] * window[i];
        #pragma unroll
        for (int m = 0; m < MEMORY; ++m)
            if (m < h.held && m != h.newest) sum = fmaf(board->factors[m], step_of(h, m)[i], sum);
        window[i] = sum;
    });
    __syncthreads();
    bool clipped = false;
    in_colours(s, [&](const Bucket& b) {
        for (int i0 = 0; i0 < b.count; i0 += 32) {
            const int i = i0 + (threadIdx.x & 31);
            const bool mine = i < b.count;
            const int code = mine ? s.codes[b.start + i] : 0;
            const float old = mine ? s.values[b.start + i] : 0.0f;
            float* moves = h.moves + (i64)b.local * s.g[G_CAP] + i;
            float move = 0.0f;
            #pragma unroll
            for (int m = 0; m < MEMORY; ++m)
                if (m < h.held && old != 0.0f) move = fmaf(board->factors[m], moves[m * h.slots], move);
            float fresh = old + move;
            const bool stops = old != 0.0f && fresh * old <= 0.0f;
            const unsigned stopping = __ballot_sync(0xffffffffu, stops);
            if (stopping) add_filters(s, window_address(), b.inside, stopping, code, fresh);
            if (stops) { fresh = 0.0f; move = -old; clipped = true; }
            if (old != 0.0f)
                *change += price_of(s, b, code) * (fabsf(fresh) - fabsf(old)) + 0.5f * s.ridge * (fresh * fresh - old * old);
            if (mine) moves[MEMORY * h.slots] = move;
        }
    });
    return __syncthreads_or(clipped);
}

// How the objective changes by the combined step.
__device__ double worth(const Tile& s, const History& h, Board* board, float change) {
    const float* aside = step_of(h, MEMORY);
    const float* weights = s.weights + s.first;
    each_sample(s, [&](int i, i64 j, bool counted) {
        if (counted) change += window[i] * fmaf(0.5f * __ldg(weights + j), window[i], aside[i]);
    });
    const float mine[1] = {change};
    add_up(s, board, mine);
    return board->sums[0];
}

// Make the combined move; it joins the newest one.
__device__ void take_move(const Tile& s, const History& h) {
    const int lane = threadIdx.x & 31;
    in_turn(s, [&](const Bucket& b) {
        float* moves = h.moves + (i64)b.local * s.g[G_CAP];
        float largest = s.stirs[b.local];
        for (int i = lane; i < b.count; i += 32) {
            const float move = moves[MEMORY * h.slots + i];
            s.values[b.start + i] += move;
            moves[h.newest * h.slots + i] += move;
            largest = fmaxf(largest, fabsf(s.curvatures[b.start + i]) * move * move);
        }
        #pragma unroll
        for (int o = 16; o; o >>= 1) largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, o));
        if (lane == 0) s.stirs[b.local] = largest;
    });
}

// Put the residual back, changed by the step that took its place or not.
__device__ void put_back(const Tile& s, const History& h, bool changed) {
    const float* aside = step_of(h, MEMORY);
    const float* weights = s.weights + s.first;
    float* newest = step_of(h, h.newest);
    each_sample(s, [&](int i, i64 j, bool) {
        const float step = changed ? window[i] : 0.0f;
        const float left = aside[i];
        window[i] = is_unseen(left) ? left : fmaf(__ldg(weights + j), step, left);
        if (changed) newest[i] += step;
    });
    __syncthreads();
}

// After sweeps: make the best step in the span of the moves, if it lowers the objective.
__device__ __noinline__ void extrapolate(const Tile& s, const History& h, Board* board) {
    float sums[SUMS] = {};
    put_aside(s, h);
    gather_moves(s, h, sums);
    multiply_steps(s, h, sums);
    add_up(s, board, sums);
    if (threadIdx.x == 0) best_factors(board);
    __syncthreads();
    float change = 0.0f;
    const bool better = !combine(s, h, board, &change) || worth(s, h, board, change) < 0.0;
    if (better) take_move(s, h);
    put_back(s, h, better);
}

// Sweeps over the tiles of one colour, a block a tile. Each sweep over the working set is followed by up to `extra` over the
// non-zeros, until the largest move falls below the signal's target; they are extrapolated where `room` is given, of
// `room_size` floats for each block: what `History` keeps. Filters are padded to whole warps, their samples in the order of
// the `lanes`. The penalties of a signal are multiplied with its `raised`, and `ridge` adds ½ ridge z² to the objective.
// `plain` says that all weights are one or zero.
extern "C" __global__ void __launch_bounds__(512, PER_LANE <= 5 ? 2 : 1)
descend(const int* __restrict__ g, const int* __restrict__ active, float* __restrict__ residual,
        const float* __restrict__ filters, const int* __restrict__ lanes, const float* __restrict__ penalty,
        const float* __restrict__ weights, i64 weight_stride, int plain, const int* __restrict__ codes, float* values,
        const float* __restrict__ curvatures, const int* __restrict__ counts, const float* __restrict__ targets,
        const float* __restrict__ raised, float* __restrict__ moved, float ridge, int tile_colour, int max_sweeps, int extra, int write_back, float* room, i64 room_size) {
    __shared__ int ticket;
    __shared__ float peak;
    __shared__ Board board;
    __shared__ Tile s;
    Spot tile;
#if AROUND
    const Spot tiles = {g[G_NTZ], g[G_NTY], g[G_NTX]};
    if (!of_class(blockIdx.x, tile_colour, tiles, {g[G_PTZ], g[G_PTY], g[G_PTX]}, &tile)) return;
#else
    if (!of_colour(blockIdx.x, tile_colour, g[G_NTZ], g[G_NTY], g[G_NTX], &tile)) return;
#endif
    if (threadIdx.x == 0) {
        s.g = g; s.filters = filters; s.lanes = lanes; s.penalty = penalty; s.codes = codes; s.values = values;
        s.curvatures = curvatures; s.counts = counts;
        s.ridge = ridge;
        s.plain = plain;
        s.n = active[blockIdx.y];
        s.raised = raised[s.n];
        s.weights = weights + s.n * weight_stride;
        s.corner = {tile.z * g[G_TBZ], tile.y * g[G_TBY], tile.x * g[G_TBX]};
        s.field = {min(g[G_TBZ], g[G_NBZ] - s.corner.z), min(g[G_TBY], g[G_NBY] - s.corner.y),
                   min(g[G_TBX], g[G_NBX] - s.corner.x)};
        const Spot first = {s.corner.z * g[G_BD], s.corner.y * g[G_BH], s.corner.x * g[G_BW]};  // position
        s.depth = min(s.field.z * g[G_BD], g[G_D] - first.z) + FD - 1;
        s.height = min(s.field.y * g[G_BH], g[G_H] - first.y) + FH - 1;
        s.width = min(s.field.x * g[G_BW], g[G_W] - first.x) + FW - 1;
        s.pitch = g[G_PITCH];
        s.plane = s.height * s.pitch;
        s.volume = s.depth * s.plane;
        s.first = base_of(g, first);
#if AROUND
        s.length = {tiles.z == 1 && FD > 1 ? g[G_D] : 0, tiles.y == 1 && FH > 1 ? g[G_H] : 0,
                    tiles.x == 1 && FW > 1 ? g[G_W] : 0};
        s.paired = {s.length.z ? g[G_PBZ] : s.field.z, s.length.y ? g[G_PBY] : s.field.y,
                    s.length.x ? g[G_PBX] : s.field.x};
#endif
        s.stirs = window + CH * s.volume;
    }
    __syncthreads();
    float* mine = residual + s.n * CH * padded_volume(g) + s.first;
    const float* seen = s.weights + s.first;
    each_sample(s, [&](int i, i64 j, bool) { window[i] = marked(mine[j], __ldg(seen + j)); });
    History h;
    h.samples = CH * s.volume;
    h.slots = (i64)s.field.z * s.field.y * s.field.x * g[G_CAP];
    h.steps = room + ((i64)blockIdx.y * gridDim.x + blockIdx.x) * room_size;
    h.moves = h.steps + (MEMORY + 1) * h.samples;
    const float target = targets[s.n];
    float largest = 0.0f;
    int count = 0;
    for (int pass = 0; pass < max_sweeps; ++pass) {
        largest = sweep(s, false, 0.0f, &ticket, &peak);
        if (!(largest >= target)) break;
        for (int again = 0; again < extra; ) {
            if (room) {
                h.newest = count % MEMORY;
                begin_move(s, h);
            }
            float move = 0.0f;
            for (int turn = 0; turn < SWEEPS && again < extra; ++turn, ++again) {
                move = sweep(s, true, 0.5f * target, &ticket, &peak);
                if (!(move >= 0.5f * target)) break;
            }
            if (!(move >= 0.5f * target)) break;
            if (!room) continue;
            h.held = min(++count, MEMORY);
            extrapolate(s, h, &board);
        }
    }
    if (threadIdx.x == 0) max_into(moved + s.n, largest);
    if (!write_back) return;
    each_sample(s, [&](int i, i64 j, bool) { mine[j] = window[i]; });
}
