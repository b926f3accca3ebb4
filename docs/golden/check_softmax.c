/* Checks one step of a golden file: are the attention weights the softmax of the scores?
 *
 *     cc -std=c99 -O2 -o check_softmax check_softmax.c -lm
 *     ./check_softmax FOLDER [SCORES WEIGHTS]
 *
 * FOLDER is what `byhand trace … --out FOLDER` wrote.  Without names, block 0 is checked.
 * Exit status: 0 they are, 1 they are not, 2 the files cannot be read.
 *
 * values.safetensors is 8 bytes with the length of a header, the header (a JSON object), then the
 * numbers.  Nothing in the file is trusted: every length is compared with the size of the file
 * before it is used.
 */
#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_AXES 8
#define LONGEST_HEADER 100000000u /* bytes, as the format says */

typedef struct {
    int found;
    char dtype[8];
    int axes;
    uint64_t shape[MOST_AXES], begin, end; /* begin, end: bytes of the data */
    double *values;
} Tensor;

static void refuse(const char *why, ...)
{
    va_list facts;
    va_start(facts, why);
    fputs("check_softmax: ", stderr);
    vfprintf(stderr, why, facts);
    fputc('\n', stderr);
    va_end(facts);
    exit(2);
}

/* ---- the header: just as much JSON as safetensors uses ---- */

static const char *at; /* the next character of the header; a NUL ends it */

static char next(void)
{
    while (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r') at++;
    return *at;
}

static void expect(char wanted)
{
    if (next() != wanted) refuse("the header is malformed: no %c", wanted);
    at++;
}

/* Whether another item follows in an object or a list; steps over the comma, or over the end. */
static int more(char end, int first)
{
    if (next() == end) return at++, 0;
    if (!first) expect(',');
    return 1;
}

/* A text as it is written: what is cut off or has a backslash is no name that we look for. */
static void read_text(char *into, size_t room)
{
    size_t used = 0;
    expect('"');
    for (; *at != '"'; at++) {
        if (*at == '\\' && at[1]) {
            if (used + 1 < room) into[used++] = *at;
            at++;
        }
        if (!*at) refuse("the header ends within a text");
        if (used + 1 < room) into[used++] = *at;
    }
    into[used] = '\0';
    at++;
}

static uint64_t read_whole_number(void)
{
    uint64_t number = 0;
    if (next() < '0' || *at > '9') refuse("the header is malformed: no whole number");
    for (; *at >= '0' && *at <= '9'; at++) {
        if (number > (UINT64_MAX - 9) / 10) refuse("a number in the header is too large");
        number = 10 * number + (uint64_t)(*at - '0');
    }
    return number;
}

static Tensor read_entry(void)
{
    Tensor tensor = {0};
    char key[32], text[4096];
    int first, offsets = 0;
    expect('{');
    for (first = 1; more('}', first); first = 0) {
        read_text(key, sizeof key);
        expect(':');
        if (next() == '"') { /* dtype, or a remark in __metadata__ */
            read_text(text, sizeof text);
            if (!strcmp(key, "dtype")) snprintf(tensor.dtype, sizeof tensor.dtype, "%.7s", text);
            continue;
        }
        expect('[');
        for (first = 1; more(']', first); first = 0) {
            uint64_t number = read_whole_number();
            if (!strcmp(key, "shape") && tensor.axes < MOST_AXES)
                tensor.shape[tensor.axes++] = number;
            else if (!strcmp(key, "data_offsets") && offsets < 2)
                *(offsets++ ? &tensor.end : &tensor.begin) = number;
            else
                refuse("the header is malformed: too many numbers in %s", key);
        }
    }
    tensor.found = offsets == 2;
    return tensor;
}

static Tensor find(const char *header, const char *name)
{
    Tensor tensor, wanted = {0};
    char key[4096];
    int first;
    at = header;
    expect('{');
    for (first = 1; more('}', first); first = 0) {
        read_text(key, sizeof key);
        expect(':');
        tensor = read_entry();
        if (!strcmp(key, name)) wanted = tensor;
    }
    if (next()) refuse("the header goes on after its end");
    if (!wanted.found) refuse("there is no tensor %s", name);
    return wanted;
}

/* ---- the numbers ---- */

/* The value of a little-endian float, whatever the order of bytes on this machine. */
static double decode(const unsigned char *bytes, unsigned width)
{
    uint64_t bits = 0;
    uint32_t half;
    double wide;
    float narrow;
    for (unsigned i = 0; i < width; i++) bits |= (uint64_t)bytes[i] << (8 * i);
    if (width == 8) return memcpy(&wide, &bits, 8), wide;
    half = (uint32_t)bits;
    return memcpy(&narrow, &half, 4), narrow;
}

static void load(FILE *file, uint64_t start, uint64_t size, Tensor *tensor, const char *name)
{
    unsigned width = !strcmp(tensor->dtype, "F64") ? 8 : !strcmp(tensor->dtype, "F32") ? 4 : 0;
    uint64_t count = 1, bytes;
    unsigned char number[8];
    if (!width) refuse("%s is %s; F64 or F32 can be checked", name, tensor->dtype);
    if (tensor->begin > tensor->end || tensor->end > size)
        refuse("%s lies outside the file", name);
    bytes = tensor->end - tensor->begin;
    for (int axis = 0; axis < tensor->axes; axis++) {
        if (!tensor->shape[axis] || tensor->shape[axis] > bytes / count)
            refuse("%s has another size than its shape", name);
        count *= tensor->shape[axis];
    }
    if (count * width != bytes) refuse("%s has another size than its shape", name);
    tensor->values = malloc(count * sizeof *tensor->values);
    if (!tensor->values) refuse("%s does not fit into memory", name);
    if (fseek(file, (long)(start + tensor->begin), SEEK_SET)) refuse("%s cannot be read", name);
    for (uint64_t i = 0; i < count; i++) {
        if (fread(number, width, 1, file) != 1) refuse("%s cannot be read", name);
        tensor->values[i] = decode(number, width);
    }
}

/* ---- the step ---- */

/* Softmax of each row of scores against the weights.  A masked score is -inf, its weight 0.
 *
 * The bound: with n scores of at most size S in a row, a weight may differ from ours by
 * (4 S + n + 16) roundings of its own size.  Rounding a score moves its power of e by S roundings
 * at most, in the file and after the largest is taken away; the sum adds n, and what is left
 * covers exp, the division and our own arithmetic, which is double throughout. */
static int check(const Tensor *scores, const Tensor *weights)
{
    uint64_t n = scores->shape[scores->axes - 1], rows = 1, row, i;
    int narrow = !strcmp(weights->dtype, "F32") || !strcmp(scores->dtype, "F32");
    double rounding = narrow ? FLT_EPSILON / 2 : DBL_EPSILON / 2;
    double least = narrow ? FLT_MIN : DBL_MIN; /* below it, numbers have fewer digits */
    double largest = 0, share = 0;
    for (int axis = 0; axis + 1 < scores->axes; axis++) rows *= scores->shape[axis];
    for (row = 0; row < rows; row++) {
        const double *s = scores->values + row * n, *w = weights->values + row * n;
        double top = -INFINITY, size = 0, sum = 0;
        for (i = 0; i < n; i++) {
            if (s[i] > top) top = s[i];
            if (fabs(s[i]) > size && s[i] != -INFINITY) size = fabs(s[i]);
        }
        for (i = 0; i < n; i++) sum += exp(s[i] - top);
        for (i = 0; i < n; i++) {
            double ours = exp(s[i] - top) / sum, difference = fabs(w[i] - ours);
            double bound = (4 * size + (double)n + 16) * rounding * ours;
            if (s[i] != -INFINITY) bound += least;
            if (!(difference <= bound)) { /* also where something is not a number */
                printf("row %llu, key %llu: the weight is %.17g, the softmax %.17g\n",
                       (unsigned long long)row, (unsigned long long)i, w[i], ours);
                return 1;
            }
            if (difference > largest) largest = difference;
            if (bound > 0 && difference / bound > share) share = difference / bound;
        }
    }
    printf("%llu rows of %llu are the softmax of their scores\n", (unsigned long long)rows,
           (unsigned long long)n);
    printf("largest difference %.2g, at most %.2g of what rounding explains\n", largest, share);
    return 0;
}

int main(int count, char **words)
{
    const char *scores_name = count == 4 ? words[2] : "block.0.attn.scores";
    const char *weights_name = count == 4 ? words[3] : "block.0.attn.weights";
    char path[4096], *header;
    unsigned char first[8];
    uint64_t length = 0, size;
    long end;
    FILE *file;
    Tensor scores, weights;

    if (count != 2 && count != 4) refuse("check_softmax FOLDER [SCORES WEIGHTS]");
    if (snprintf(path, sizeof path, "%s/values.safetensors", words[1]) >= (int)sizeof path)
        refuse("the name of the folder is too long");
    file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END) || (end = ftell(file)) < 0)
        refuse("%s cannot be read", path);
    size = (uint64_t)end;
    rewind(file);
    if (fread(first, 8, 1, file) != 1) refuse("%s is too short", path);
    for (int i = 0; i < 8; i++) length |= (uint64_t)first[i] << (8 * i);
    if (length > LONGEST_HEADER || length > size - 8) refuse("%s ends within its header", path);
    header = calloc(length + 1, 1);
    if (!header || (length && fread(header, length, 1, file) != 1))
        refuse("%s cannot be read", path);

    scores = find(header, scores_name);
    weights = find(header, weights_name);
    load(file, 8 + length, size - 8 - length, &scores, scores_name);
    load(file, 8 + length, size - 8 - length, &weights, weights_name);
    if (!scores.axes || scores.axes != weights.axes ||
        memcmp(scores.shape, weights.shape, sizeof scores.shape))
        refuse("%s and %s have different shapes", scores_name, weights_name);
    return check(&scores, &weights);
}
