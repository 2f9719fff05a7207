// What all kernels share: the geometry that the host passes as an array of integers, and warp helpers.
// CH, FD, FH, FW (channels, and a filter's depth, height and width) are given when the kernels are compiled; planes have a
// depth of one, lines a height of one too.

enum { G_D, G_H, G_W, G_PD, G_PH, G_PW, G_BD, G_BH, G_BW, G_NBZ, G_NBY, G_NBX, G_SHIFT, G_LIFT, G_CAP,
       G_TBZ, G_TBY, G_TBX, G_NTZ, G_NTY, G_NTX, G_K, G_PANELS, G_RUNS, G_BLOCKS,
       G_PBZ, G_PBY, G_PBX, G_PTZ, G_PTY, G_PTX, G_PITCH };

#define AREA (FH * FW)
#define BOX (FD * AREA)
#define TAPS (CH * BOX)
#define PER_LANE ((TAPS + 31) / 32)
#if PER_LANE % 4 == 0
#define AT_ONCE 4  // samples of a filter that a lane of the sweeps loads at once: `at_once` of engine.py
#elif PER_LANE % 2 == 0
#define AT_ONCE 2
#else
#define AT_ONCE 1
#endif

typedef long long i64;

__device__ __forceinline__ float warp_sum(float v) {
    #pragma unroll
    for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(0xffffffffu, v, o);
    return v;
}

__device__ __forceinline__ double warp_sum(double v) {
    #pragma unroll
    for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(0xffffffffu, v, o);
    return v;
}

// Largest of non-negative floats: their bits compare like the numbers, and NaN is larger than all of them.
__device__ __forceinline__ void max_into(float* at, float v) {
    atomicMax(reinterpret_cast<unsigned int*>(at), __float_as_uint(v));
}

// Where sample t of a filter lies relative to a code's base, for the strides of channels, layers and rows.
__device__ __forceinline__ i64 tap_offset(int t, i64 volume, i64 plane, i64 pitch) {
    return t / BOX * volume + t % BOX / AREA * plane + t % AREA / FW * pitch + t % FW;
}

// The same for this lane's share of a filter's samples.
__device__ __forceinline__ void lane_offsets(int lane, int volume, int plane, int pitch, int* offsets) {
    #pragma unroll
    for (int q = 0; q < PER_LANE; ++q) offsets[q] = (int)tap_offset(min(lane + 32 * q, TAPS - 1), volume, plane, pitch);
}

__device__ __forceinline__ void lane_taps(int lane, const float* __restrict__ filters, int k, float* taps) {
    #pragma unroll
    for (int q = 0; q < PER_LANE; ++q) {
        int t = lane + 32 * q;
        taps[q] = t < TAPS ? __ldg(filters + (i64)k * TAPS + t) : 0.0f;
    }
}

struct Spot { int z, y, x; };

// Bucket number `index` among those of one colour, in a field of layers × rows × columns buckets.
__device__ __forceinline__ bool of_colour(int index, int colour, int layers, int rows, int columns, Spot* at) {
    const int cz = colour >> 2, cy = colour >> 1 & 1, cx = colour & 1;
    const int across = (columns - cx + 1) >> 1, down = (rows - cy + 1) >> 1, deep = (layers - cz + 1) >> 1;
    if (index >= across * down * deep) return false;
    const int line = index / across;
    at->x = 2 * (index - line * across) + cx;
    at->y = 2 * (line % down) + cy;
    at->z = 2 * (line / down) + cz;
    return true;
}

// The same around a circle, where an axis has up to four classes (`class_size` of plan.py): colour is layer << 4 | row << 2
// | column of the classes' numbers, and `paired` how many parts of each axis are told apart by their parity.
__device__ __forceinline__ int class_size(int number, int count, int paired) {
    return number < 2 ? (paired - number + 1) >> 1 : paired + number - 2 < count;
}

__device__ __forceinline__ int class_member(int number, int paired, int i) {
    return number < 2 ? 2 * i + number : paired + number - 2;
}

__device__ __forceinline__ bool of_class(int index, int colour, const Spot& field, const Spot& paired, Spot* at) {
    const int cz = colour >> 4, cy = colour >> 2 & 3, cx = colour & 3;
    const int across = class_size(cx, field.x, paired.x), down = class_size(cy, field.y, paired.y);
    if (index >= across * down * class_size(cz, field.z, paired.z)) return false;
    const int line = index / across;
    at->x = class_member(cx, paired.x, index - line * across);
    at->y = class_member(cy, paired.y, line % down);
    at->z = class_member(cz, paired.z, line / down);
    return true;
}

__device__ __forceinline__ int n_buckets(const int* g) { return g[G_NBZ] * g[G_NBY] * g[G_NBX]; }

__device__ __forceinline__ int bucket_number(const int* g, int layer, int row, int column) {
    return (layer * g[G_NBY] + row) * g[G_NBX] + column;
}

// First position of a bucket.
__device__ __forceinline__ Spot corner_of(const int* g, int bucket) {
    const int line = bucket / g[G_NBX];
    return {line / g[G_NBY] * g[G_BD], line % g[G_NBY] * g[G_BH], (bucket - line * g[G_NBX]) * g[G_BW]};
}

// A code is filter << 12 | layer in bucket << lift | row in bucket << shift | column in bucket.
__device__ __forceinline__ int pack(const int* g, int k, int z, int y, int x) {
    return k << 12 | z << g[G_LIFT] | y << g[G_SHIFT] | x;
}

// Position of a code in a bucket that begins at `corner`.
__device__ __forceinline__ Spot spot_of(const int* g, int code, const Spot& corner) {
    const int place = code & 4095, shift = g[G_SHIFT], lift = g[G_LIFT];
    return {corner.z + (place >> lift), corner.y + ((place & ((1 << lift) - 1)) >> shift),
            corner.x + (place & ((1 << shift) - 1))};
}

__device__ __forceinline__ i64 position_of(const int* g, const Spot& s) {
    return ((i64)s.z * g[G_H] + s.y) * g[G_W] + s.x;
}

// Where the filter of a code begins in the padded signal.
__device__ __forceinline__ i64 base_of(const int* g, const Spot& s) {
    return ((i64)s.z * g[G_PH] + s.y) * g[G_PW] + s.x;
}

__device__ __forceinline__ i64 padded_volume(const int* g) { return (i64)g[G_PD] * g[G_PH] * g[G_PW]; }
__device__ __forceinline__ i64 n_positions(const int* g) { return (i64)g[G_D] * g[G_H] * g[G_W]; }
