// What all kernels share: the geometry that the host passes as an array of integers, and warp helpers.
// FH, FW, CH (filter height, width, channels) are given when the kernels are compiled.

enum { G_H, G_W, G_PH, G_PW, G_BH, G_BW, G_NBY, G_NBX, G_SHIFT, G_CAP, G_TBY, G_TBX, G_NTY, G_NTX, G_K,
       G_PANELS, G_RUNS, G_BLOCKS };

#define TAPS (CH * FH * FW)
#define PER_LANE ((TAPS + 31) / 32)

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

// Where this lane's share of a filter's samples lies relative to a code's base, for a plane and row stride.
__device__ __forceinline__ void lane_offsets(int lane, int plane, int pitch, int* offsets) {
    #pragma unroll
    for (int q = 0; q < PER_LANE; ++q) {
        int t = lane + 32 * q;
        t = t < TAPS ? t : TAPS - 1;
        int c = t / (FH * FW), rest = t - c * (FH * FW);
        offsets[q] = c * plane + (rest / FW) * pitch + rest % FW;
    }
}

__device__ __forceinline__ void lane_taps(int lane, const float* __restrict__ filters, int k, float* taps) {
    #pragma unroll
    for (int q = 0; q < PER_LANE; ++q) {
        int t = lane + 32 * q;
        taps[q] = t < TAPS ? __ldg(filters + (i64)k * TAPS + t) : 0.0f;
    }
}

// Bucket number `index` among those of one colour, in a field of rows × columns buckets.
__device__ __forceinline__ bool of_colour(int index, int colour, int rows, int columns, int* row, int* column) {
    int cy = colour >> 1, cx = colour & 1;
    int across = (columns - cx + 1) >> 1, down = (rows - cy + 1) >> 1;
    if (across <= 0 || index >= across * down) return false;
    *row = 2 * (index / across) + cy;
    *column = 2 * (index % across) + cx;
    return true;
}
