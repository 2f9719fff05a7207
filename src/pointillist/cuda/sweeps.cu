// Coordinate descent on a tile: sweeps over its buckets, and `descend`, which makes them. A block has a tile, with its part
// of the residual in shared memory; a warp has a bucket at a time.

extern __shared__ __align__(16) float window[];  // the residual, then the stirs

// A tile being swept over, the same for all threads of a block: its first bucket (`corner`) and how many it has each way
// (`field`), and the strides of its window.
struct Tile {
    const int* g;
    const float *filters, *penalty, *weights;
    const int* lanes;  // which sample of a filter each lane has in each turn, and where that lies in the padded signal
    const int* codes;
    float* values;
    const float* curvatures;
    const int* counts;
    float* stirs;  // for each bucket the largest curvature · change² of its codes
    float ridge;
    float raised;  // what the penalties are multiplied with
    bool plain;  // whether all weights are one or zero
    int n, width, pitch, plane, volume, height, depth;
    i64 first;  // where the window begins in the padded signal
    Spot corner, field;
    Spot paired, length;  // AROUND: buckets that parity tells apart; the circle where the window holds all of it, 0 elsewhere
};

// The codes of a bucket: where they are kept, and where the bucket begins in the tile.
struct Bucket {
    int number, local, count;
    i64 start;
    Spot inside;
};

__device__ __forceinline__ Bucket bucket_at(const Tile& s, const Spot& which) {
    const int* g = s.g;
    Bucket b;
    b.number = bucket_number(g, s.corner.z + which.z, s.corner.y + which.y, s.corner.x + which.x);
    b.local = (which.z * s.field.y + which.y) * s.field.x + which.x;
    b.count = s.counts[(i64)s.n * n_buckets(g) + b.number];
    b.start = bucket_start(g, s.n, b.number);
    b.inside = {which.z * g[G_BD], which.y * g[G_BH], which.x * g[G_BW]};
    return b;
}

__device__ __forceinline__ float price_of(const Tile& s, const Bucket& b, int code) {
    return s.raised * penalty_of(s.g, s.penalty, code >> 12, spot_of(s.g, code, corner_of(s.g, b.number)));
}

// Bucket number `index` of a tile among those of one colour.
#if AROUND
#define COLOURS(tile) 64
__device__ __forceinline__ bool member(const Tile& s, int index, int colour, Spot* which) {
    return of_class(index, colour, s.field, s.paired, which);
}
#else
#define COLOURS(tile) ((tile).field.z > 1 ? 8 : 4)
__device__ __forceinline__ bool member(const Tile& s, int index, int colour, Spot* which) {
    return of_colour(index, colour, s.field.z, s.field.y, s.field.x, which);
}
#endif

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

__device__ __forceinline__ bool meets_seams(const Tile& s, const Spot& at) {
    return meets_seam(at.z, s.length.z, FD) || meets_seam(at.y, s.length.y, FH) || meets_seam(at.x, s.length.x, FW);
}

// Write sample t of the filter that begins at `at` to its other copies: along each axis, and along several at once.
__device__ __forceinline__ void write_copies(const Tile& s, float* to, const Spot& at, int t, float value) {
    const int z = at.z + t % BOX / AREA, y = at.y + t % AREA / FW, x = at.x + t % FW;
    const int oz = copy_of(z, s.length.z, FD), oy = copy_of(y, s.length.y, FH), ox = copy_of(x, s.length.x, FW);
    float* from = to + t / BOX * s.volume;
    #pragma unroll
    for (int which = 1; which < (FD > 1 ? 8 : FH > 1 ? 4 : 2); ++which) {
        const int cz = which & 4 ? oz : z, cy = which & 2 ? oy : y, cx = which & 1 ? ox : x;
        if (cz >= 0 && cy >= 0 && cx >= 0) from[cz * s.plane + cy * s.pitch + cx] = value;
    }
}
#endif

// A value that stays in a register: the compiler would compute it again in every turn of a loop.
template <class T> __device__ __forceinline__ T held(T value) {
    return __shfl_sync(0xffffffffu, value, threadIdx.x & 31);
}

// Whether tap q of a lane is one of the filter's; `last` says so of the last one.
#define IS_LAST_TAP(lane) ((lane) + 32 * (PER_LANE - 1) < TAPS)
#define IS_TAP(q, last) ((q) + 1 < PER_LANE || TAPS % 32 == 0 || (last))

// Samples by where they lie, in bytes: in shared memory by addresses of 32 bits, elsewhere from a pointer on.
__device__ __forceinline__ unsigned window_address() { return (unsigned)__cvta_generic_to_shared(window); }

__device__ __forceinline__ float sample_at(unsigned in, unsigned at) {
    float value;
    asm volatile("ld.shared.f32 %0, [%1];" : "=f"(value) : "r"(in + at) : "memory");
    return value;
}

__device__ __forceinline__ void put_sample(unsigned in, unsigned at, float value) {
    asm volatile("st.shared.f32 [%0], %1;" :: "r"(in + at), "f"(value) : "memory");
}

__device__ __forceinline__ float sample_at(float* in, unsigned at) { return in[at >> 2]; }
__device__ __forceinline__ void put_sample(float* in, unsigned at, float value) { in[at >> 2] = value; }

// Where this lane's share of a filter lies from a code's first sample, in bytes: the lanes of a warp meet different banks.
__device__ __forceinline__ void window_offsets(const Tile& s, int lane, unsigned* offsets) {
    #pragma unroll
    for (int q = 0; q < PER_LANE; ++q)
        offsets[q] = 4 * (unsigned)tap_offset(__ldg(s.lanes + lane + 32 * q), s.volume, s.plane, s.pitch);
}

// Where a code's first sample lies in the window, in bytes.
__device__ __forceinline__ unsigned own_offset(const Tile& s, const Spot& at) {
    return 4 * (unsigned)(at.z * s.plane + at.y * s.pitch + at.x);
}

// Filters whose samples are in the order of the lanes, padded to whole warps, from this lane's first on: what a lane loads at
// once lies together.
__device__ __forceinline__ const float* filters_of(const Tile& s, int lane) {
    return reinterpret_cast<const float*>(held(reinterpret_cast<unsigned long long>(s.filters + AT_ONCE * lane)));
}

// This lane's share of a filter; `first` is the filter's number times its padded length.
__device__ __forceinline__ void padded_taps(const float* __restrict__ filters, int first, float (&taps)[PER_LANE]) {
    const float* from = filters + first;
    #pragma unroll
    for (int q = 0; q < PER_LANE; q += AT_ONCE) {
#if AT_ONCE == 4
        const float4 some = __ldg(reinterpret_cast<const float4*>(from + 32 * q));
        taps[q] = some.x; taps[q + 1] = some.y; taps[q + 2] = some.z; taps[q + 3] = some.w;
#elif AT_ONCE == 2
        const float2 some = __ldg(reinterpret_cast<const float2*>(from + 32 * q));
        taps[q] = some.x; taps[q + 1] = some.y;
#else
        taps[q] = __ldg(from + 32 * q);
#endif
    }
}

// Samples of weight zero are −0 in the window, where nothing else is: they stay as they are whatever meets them, and no weights
// need to be read where all others are one.
__device__ __forceinline__ bool is_unseen(float sample) { return __float_as_uint(sample) == 0x80000000u; }
__device__ __forceinline__ float marked(float sample, float weight) { return weight == 0.0f ? -0.0f : sample + 0.0f; }

// Multiply this lane's share of a filter by the weights that it meets. A function of its own, for it is needed for weights
// between zero and one only and would take registers from all visits.
__device__ __noinline__ void weigh(const Tile& s, int code, const Spot& inside, float* taps) {
    const int lane = threadIdx.x & 31, place = (int)base_of(s.g, spot_of(s.g, code, inside));
    const float* weights = s.weights + s.first;
    const int* abroad = s.lanes + 32 * PER_LANE + lane;
    #pragma unroll
    for (int q = 0; q < PER_LANE; ++q) taps[q] *= __ldg(weights + (place + __ldg(abroad + 32 * q)));
}

__device__ __forceinline__ float* place_of(unsigned) { return window; }
__device__ __forceinline__ float* place_of(float* in) { return in; }

#if AROUND
// Repeat what a filter that begins at `at` changed where the samples have other copies.
__device__ __noinline__ void repeat(const Tile& s, float* in, const Spot& at) {
    const int lane = threadIdx.x & 31, base = at.z * s.plane + at.y * s.pitch + at.x;
    for (int t = lane; t < TAPS; t += 32)
        write_copies(s, in, at, t, in[base + (int)tap_offset(t, s.volume, s.plane, s.pitch)]);
}
#endif

// The minimum over one code, for the slope that the other codes leave it.
__device__ __forceinline__ float shrunk(float slope, float price, float inverse) {
#if NONNEGATIVE
    return fmaxf(slope - price, 0.0f) * inverse;
#else
    return (slope - fminf(fmaxf(slope, -price), price)) * inverse;
#endif
}

// One pass over the codes of a bucket, or over its non-zeros. Each lane has a code, and all of them add its filter up; the
// code's own lane finds its value. The next filter is on its way while one is used, for which a turn of the loop makes two
// visits. Returns the largest curvature · change².
__device__ __noinline__ float visit(const Tile& s, Spot which, bool alive_only) {
    const Bucket b = bucket_at(s, which);
    const int lane = held((int)threadIdx.x & 31);
    const bool last = IS_LAST_TAP(lane);
    unsigned offsets[PER_LANE];
    window_offsets(s, lane, offsets);
    const float* filters = filters_of(s, lane);
    float largest = 0.0f;
    for (int i0 = 0; i0 < b.count; i0 += 32) {
        const int i = i0 + lane;
        const int code = i < b.count ? s.codes[b.start + i] : 0;
        float value = i < b.count ? s.values[b.start + i] : 0.0f;
        const float signed_c = i < b.count ? s.curvatures[b.start + i] : 1.0f, c = fabsf(signed_c), before = value;
        unsigned todo = __ballot_sync(0xffffffffu, i < b.count && (!alive_only || value != 0.0f));
        if (!todo) continue;
        const Spot at = spot_of(s.g, code, b.inside);
        const unsigned own = window_address() + own_offset(s, at);
        const int filter = held((code >> 12) * (32 * PER_LANE));
        const float price = i < b.count ? price_of(s, b, code) : 0.0f;
        const float inverse = __fdividef(1.0f, c + s.ridge);
        const unsigned weighted = __ballot_sync(0xffffffffu, signed_c < 0.0f);
#if AROUND
        const unsigned seams = __ballot_sync(0xffffffffu, meets_seams(s, at));
#endif
        int now = __ffs(todo) - 1;
        unsigned base = __shfl_sync(0xffffffffu, own, now);
        const auto one = [&](float (&taps)[PER_LANE], float (&next)[PER_LANE]) {
            float met[PER_LANE], slope = 0.0f;
            #pragma unroll
            for (int q = 0; q < PER_LANE; ++q) met[q] = sample_at(base, offsets[q]);
            const unsigned rest = todo & (todo - 1), mine = todo ^ rest;
            const int after = __ffs(rest) - 1;  // behind the last code the last lane's filter is loaded for nothing
            const unsigned next_base = __shfl_sync(0xffffffffu, own, after);
            padded_taps(filters, __shfl_sync(0xffffffffu, filter, after), next);
            #pragma unroll
            for (int q = 0; q < PER_LANE; ++q) slope = fmaf(met[q], taps[q], slope);
            const float fresh = shrunk(fmaf(value, c, warp_sum(slope)), price, inverse);
            const float change = __shfl_sync(0xffffffffu, value - fresh, now);
            if (lane == now) value = fresh;
            if (change != 0.0f) {
                const bool all = !(weighted & mine);
                if (!all && !s.plain) {
                    float weighed[PER_LANE];
                    #pragma unroll
                    for (int q = 0; q < PER_LANE; ++q) weighed[q] = taps[q];
                    weigh(s, __shfl_sync(0xffffffffu, code, now), b.inside, weighed);
                    #pragma unroll
                    for (int q = 0; q < PER_LANE; ++q) taps[q] = weighed[q];
                }
                #pragma unroll
                for (int q = 0; q < PER_LANE; ++q)
                    if (IS_TAP(q, last) && (all || !is_unseen(met[q])))
                        put_sample(base, offsets[q], fmaf(change, taps[q], met[q]));
#if AROUND
                if (seams & mine) {
                    const Spot begin = spot_of(s.g, __shfl_sync(0xffffffffu, code, now), b.inside);
                    __syncwarp();
                    repeat(s, window, begin);
                }
#endif
                __syncwarp();
            }
            now = after; base = next_base; todo = rest;
        };
        float even[PER_LANE], odd[PER_LANE];
        padded_taps(filters, __shfl_sync(0xffffffffu, filter, now), even);
        while (true) {
            one(even, odd);
            if (!todo) break;
            one(odd, even);
            if (!todo) break;
        }
        const float change = before - value;
        largest = fmaxf(largest, change * change * c);
        if (i < b.count) s.values[b.start + i] = value;
    }
    #pragma unroll
    for (int o = 16; o; o >>= 1) largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, o));
    return largest;
}

// Whether a code of the bucket or of one beside it moved more than `quiet` when it last moved.
__device__ bool stirred(const Tile& s, const Spot& which, float quiet) {
    const int lane = threadIdx.x & 31;
    int z = which.z + lane / 9 - 1, y = which.y + lane / 3 % 3 - 1, x = which.x + lane % 3 - 1;
#if AROUND
    if (s.length.z) z = (z + s.field.z) % s.field.z;
    if (s.length.y) y = (y + s.field.y) % s.field.y;
    if (s.length.x) x = (x + s.field.x) % s.field.x;
#endif
    const bool inside = lane < 27 && z >= 0 && z < s.field.z && y >= 0 && y < s.field.y && x >= 0 && x < s.field.x;
    return __any_sync(0xffffffffu, inside && s.stirs[(z * s.field.y + y) * s.field.x + x] > quiet);
}

// One pass over the buckets of a tile, colour by colour: over all codes, or over the non-zeros of those buckets where
// something moved more than `quiet` before. Every thread returns the largest √curvature · |change|.
__device__ __noinline__ float sweep(const Tile& s, bool alive_only, float quiet, int* ticket, float* peak) {
    const int lane = threadIdx.x & 31;
    if (threadIdx.x == 0) *peak = 0.0f;
    float largest = 0.0f;
    for (int colour = 0; colour < COLOURS(s); ++colour) {
        Spot which;
        if (!member(s, 0, colour, &which)) continue;
        if (threadIdx.x == 0) *ticket = 0;
        __syncthreads();
        while (true) {
            int index = 0;
            if (lane == 0) index = atomicAdd(ticket, 1);
            index = __shfl_sync(0xffffffffu, index, 0);
            if (!member(s, index, colour, &which)) break;
            if (alive_only && !stirred(s, which, quiet * quiet)) continue;
            const float move = visit(s, which, alive_only);
            if (lane == 0) s.stirs[(which.z * s.field.y + which.y) * s.field.x + which.x] = move;
            largest = fmaxf(largest, move);
        }
        __syncthreads();
    }
    if (lane == 0) max_into(peak, largest);
    __syncthreads();
    const float found = sqrtf(*peak);
    __syncthreads();
    return found;
}

// Work on all samples of the window: work(where it is in the window, where in the padded signal from the window's first,
// whether it is the only one of its kind or the first of its copies). A warp has 128 neighbours at a time.
template <class Work> __device__ __forceinline__ void each_sample(const Tile& s, Work work) {
    const int lane = threadIdx.x & 31, *g = s.g, width = s.width, pitch = s.pitch;
    const int parts = (width + 127) / 128, units = CH * s.depth * s.height * parts;
    for (int unit = threadIdx.x >> 5; unit < units; unit += blockDim.x >> 5) {
        const int row = unit / parts, begin = (unit - row * parts) * 128;
        const int layer = row / s.height, y = row - layer * s.height, c = layer / s.depth, z = layer - c * s.depth;
        const i64 start = (((i64)c * g[G_PD] + z) * g[G_PH] + y) * g[G_PW];
        bool first = true;
#if AROUND
        first = !(s.length.y && y >= s.length.y) && !(s.length.z && z >= s.length.z);
#endif
        #pragma unroll
        for (int part = 0; part < 4; ++part) {
            const int x = begin + 32 * part + lane;
            if (x >= width) continue;
#if AROUND
            work(row * pitch + x, start + x, first && !(s.length.x && x >= s.length.x));
#else
            work(row * pitch + x, start + x, first);
#endif
        }
    }
}
