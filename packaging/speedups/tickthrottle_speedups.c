/* What a backlog of Kafka costs most, compiled: messages as columns, plain trades as
   numbers. Whatever is not plain is left to the Python that stays the reference; no
   byte of an entry, and no length, is believed before it is compared with its bounds. */

#define Py_LIMITED_API 0x030b0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

/* ---- One pass over plain trades: the form of throttle/window/vector_check.py ---- */
/* time, seq, volume, its e8, value, its e8 and e16, price in e8: as trade_sums.py has them */
enum { COLUMNS = 8, ISIN = 12, PRICE_TEXT = 18, MOST_NAMES = 32 };
#define E8 100000000
#define LATEST_MS 10000000000000 /* beyond it Python decides: nothing can overflow */

typedef struct { const unsigned char *at, *end; } Text;
typedef struct { const char *at; Py_ssize_t size; } Name;
typedef struct { int64_t whole, e8; } Decimal;

static int is_digit(unsigned char c) { return c >= '0' && c <= '9'; }
static int is_capital(unsigned char c) { return c >= 'A' && c <= 'Z'; }
static int is_small(unsigned char c) { return c >= 'a' && c <= 'z'; }
static int is_text(unsigned char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; }

/* Go past these very bytes; 0 where others follow. */
static int skip(Text *t, const char *bytes, size_t size) {
    if ((size_t)(t->end - t->at) < size || memcmp(t->at, bytes, size)) return 0;
    t->at += size;
    return 1;
}
#define SKIP(text, literal) skip(text, literal, sizeof literal - 1)

/* Read 1 to most digits, at most 18; their number, or -1. */
static int digits(Text *t, int most, int64_t *value) {
    int count = 0;
    int64_t number = 0;
    for (; t->at < t->end && is_digit(*t->at); t->at++, count++) {
        if (count == most) return -1;
        number = number * 10 + (*t->at - '0');
    }
    *value = number;
    return count ? count : -1;
}

/* Read 0, or digits that do not begin with one. */
static int whole(Text *t, int most, int64_t *value) {
    if (t->at < t->end && *t->at == '0') { t->at++; *value = 0; return 1; }
    return digits(t, most, value);
}

/* Read a decimal above zero of up to 9 digits and 8 places. */
static int decimal(Text *t, Decimal *d) {
    d->e8 = 0;
    if (whole(t, 9, &d->whole) < 0) return 0;
    if (SKIP(t, ".")) {
        int places = digits(t, 8, &d->e8);
        if (places < 0) return 0;
        for (; places < 8; places++) d->e8 *= 10;
    }
    return d->whole || d->e8;
}

static int isin(Text *t) {
    const unsigned char *s = t->at;
    if (t->end - s < ISIN || is_digit(s[0]) || is_digit(s[1]) || !is_digit(s[11])) return 0;
    int sum = 0, doubled = 0; /* Luhn's, from the check digit on */
    for (int i = ISIN - 1; i >= 0; i--) {
        if (!is_digit(s[i]) && !is_capital(s[i])) return 0;
        for (int v = is_digit(s[i]) ? s[i] - '0' : s[i] - 'A' + 10;; v /= 10) {
            int d = v % 10 * (doubled ? 2 : 1);
            sum += d / 10 + d % 10;
            doubled = !doubled;
            if (v < 10) break;
        }
    }
    t->at += ISIN;
    return sum % 10 == 0;
}

/* Go past one more field: text without escapes, or a number, under none of names. */
static int extra(Text *t, const Name *names, int count) {
    if (!SKIP(t, "\"")) return 0;
    const unsigned char *name = t->at;
    while (t->at < t->end && (is_digit(*t->at) || is_small(*t->at) || *t->at == '_')) t->at++;
    Py_ssize_t size = t->at - name;
    for (const Name *n = names; n < names + count; n++)
        if (n->size == size && !memcmp(n->at, name, size)) return 0;
    if (!size || !SKIP(t, "\":")) return 0;
    if (SKIP(t, "\"")) {
        while (t->at < t->end && is_text(*t->at)) t->at++;
        return SKIP(t, "\"");
    }
    int64_t ignored;
    SKIP(t, "-");
    return whole(t, 18, &ignored) > 0 && (!SKIP(t, ".") || digits(t, 18, &ignored) > 0);
}

/* Put a trade into columns[0, stride, 2 * stride, ...]; 0 where it is not plain. */
static int plain(Text t, int64_t latest_us, const Name *names, int name_count,
                 int64_t *columns, Py_ssize_t stride, char *key, char *text, int *text_size) {
    int64_t time, seq;
    Decimal price, size;
    if (!SKIP(&t, "{\"isin\":\"")) return 0;
    const unsigned char *code = t.at;
    if (!isin(&t) || !SKIP(&t, "\",\"time\":")) return 0;
    if (digits(&t, 16, &time) != 16 || time < 1000000000000000 || time > latest_us) return 0;
    if (!SKIP(&t, ",\"seq\":") || whole(&t, 18, &seq) < 0) return 0;
    if (!SKIP(&t, ",\"price\":\"")) return 0;
    const unsigned char *paid = t.at;
    if (!decimal(&t, &price)) return 0;
    *text_size = (int)(t.at - paid);
    if (!SKIP(&t, "\",\"size\":\"") || !decimal(&t, &size) || !SKIP(&t, "\"")) return 0;
    while (SKIP(&t, ","))
        if (!extra(&t, names, name_count)) return 0;
    if (!SKIP(&t, "}") || t.at != t.end) return 0;
    /* No part is above 2 * 10^17 on the way. */
    int64_t low = price.e8 * size.e8;
    int64_t middle = price.whole * size.e8 + price.e8 * size.whole + low / E8;
    int64_t value = price.whole * size.whole + middle / E8;
    if (value >= 100 * (int64_t)E8) return 0;
    memcpy(key, code, ISIN);
    memcpy(text, paid, *text_size);
    const int64_t row[COLUMNS] = {time,  seq,          size.whole, size.e8,
                                  value, middle % E8, low % E8,   price.whole * E8 + price.e8};
    for (int i = 0; i < COLUMNS; i++) columns[i * stride] = row[i];
    return 1;
}

/* check(offsets, data, append_ms, first, first_stamp, count, ahead_ms, latest_us, max_bytes,
   names): buffers of Arrow, where rows begin in the first and third, how many, bounds, names
   of fields that are not extra, with commas between them. Return how many rows are plain, and
   a block: columns (int64), ends of prices (int32), keys, prices, and a byte for each row. */
static PyObject *check(PyObject *module, PyObject *args) {
    Py_buffer offsets, data, stamps;
    Py_ssize_t first, first_stamp, count, max_bytes, names_size;
    long long ahead_ms, latest_us;
    const char *names;
    if (!PyArg_ParseTuple(args, "y*y*y*nnnLLns#", &offsets, &data, &stamps, &first, &first_stamp,
                          &count, &ahead_ms, &latest_us, &max_bytes, &names, &names_size))
        return NULL;
    PyObject *block = NULL, *result = NULL;
    Name known[MOST_NAMES];
    int known_count = 0;
    const char *name = names, *names_end = names + names_size;
    for (; name < names_end && known_count < MOST_NAMES; name += known[known_count++].size + 1) {
        const char *comma = memchr(name, ',', names_end - name);
        known[known_count] = (Name){name, (comma ? comma : names_end) - name};
    }
    if (name < names_end || first < 0 || first_stamp < 0 || count < 0 || max_bytes < 0 ||
        count > offsets.len / 4 - 1 - first || count > stamps.len / 8 - first_stamp ||
        count > INT32_MAX / 128 || ahead_ms < 0)
        PyErr_SetString(PyExc_ValueError, "check: a row, a bound or a name is out of range");
    else
        block = PyBytes_FromStringAndSize(NULL, count * (COLUMNS * 8 + ISIN + PRICE_TEXT + 5) + 4);
    if (block) {
        int64_t *columns = (int64_t *)PyBytes_AsString(block);
        int32_t *ends = (int32_t *)(columns + COLUMNS * count), at = 0;
        char *keys = (char *)(ends + count + 1), *prices = keys + ISIN * count;
        char *is_plain = prices + PRICE_TEXT * count;
        const char *starts = (const char *)offsets.buf + first * 4;
        const char *appended = (const char *)stamps.buf + first_stamp * 8;
        const unsigned char *bytes = data.buf;
        Py_ssize_t kept = 0;
        Py_BEGIN_ALLOW_THREADS
        ends[0] = 0;
        for (Py_ssize_t row = 0; row < count; row++) {
            int32_t from, upto, size = 0; int64_t ms;
            memcpy(&from, starts + row * 4, 4);
            memcpy(&upto, starts + row * 4 + 4, 4);
            memcpy(&ms, appended + row * 8, 8);
            is_plain[row] = 0;
            if (from < 0 || upto < from || upto > data.len || upto - from > max_bytes) continue;
            if (ms < 0 || ms > LATEST_MS) continue;
            int64_t latest = (ms + (ahead_ms < LATEST_MS ? ahead_ms : LATEST_MS)) * 1000;
            is_plain[row] = (char)plain(
                (Text){bytes + from, bytes + upto}, latest < latest_us ? latest : latest_us, known,
                known_count, columns + kept, count, keys + kept * ISIN, prices + at, &size);
            if (!is_plain[row]) continue;
            at += size;
            ends[++kept] = at;
        }
        Py_END_ALLOW_THREADS
        result = Py_BuildValue("(nN)", kept, block);
    }
    PyBuffer_Release(&offsets), PyBuffer_Release(&data), PyBuffer_Release(&stamps);
    return result;
}

/* ---- Messages of Kafka as columns, by the librdkafka that confluent-kafka has loaded ---- */

typedef struct { /* rd_kafka_message_t, the same in all versions 2 */
    int err; void *topic;
    int32_t partition;
    void *payload; size_t len;
    void *key; size_t key_len;
    int64_t offset;
    void *hidden;
} Message;
enum { MOST_MESSAGES = 100000 };
#define SIZE(m) ((m)->payload ? (m)->len : 0)

static struct {
    int (*version)(void);
    ssize_t (*consume_batch_queue)(void *, int, Message **, size_t);
    int64_t (*message_timestamp)(const Message *, int *);
    const char *(*message_errstr)(const Message *);
    void (*message_destroy)(Message *);
} rd;

/* library(path): find the functions in a library that is loaded, or in what it has loaded.
   Return the version of librdkafka. Raise OSError where there is none of version 2. */
static PyObject *library(PyObject *module, PyObject *args) {
    const char *path;
    if (!PyArg_ParseTuple(args, "s", &path)) return NULL;
    void *loaded = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    rd.message_destroy = NULL; /* found last: without it nothing is called */
#define FIND(name) (*(void **)&rd.name = dlsym(loaded, "rd_kafka_" #name))
    if (!loaded || !FIND(version) || rd.version() >> 24 != 2 || !FIND(consume_batch_queue) ||
        !FIND(message_timestamp) || !FIND(message_errstr) || !FIND(message_destroy))
        return PyErr_Format(PyExc_OSError, "%s has loaded no librdkafka of version 2", path);
    return PyLong_FromLong(rd.version());
}

/* take(queue, most, wait_ms): return how many messages came, a block of their times, offsets
   (int64), partitions, ends of values (int32) and values, and a list of what is no message:
   partition, code, offset, text. queue is the address of a consumer's queue. Raise
   OverflowError beyond 2 GiB. */
static PyObject *take(PyObject *module, PyObject *args) {
    unsigned long long queue; int most, wait_ms;
    if (!PyArg_ParseTuple(args, "Kii", &queue, &most, &wait_ms)) return NULL;
    if (!queue || !rd.message_destroy || most < 1 || most > MOST_MESSAGES)
        return PyErr_Format(PyExc_ValueError, "take: no queue, no library, or too many messages");
    Message **messages = malloc(most * sizeof *messages);
    if (!messages) return PyErr_NoMemory();
    PyObject *events = PyList_New(0), *block = NULL, *result = NULL;
    ssize_t count, rows = 0, size = 0;
    Py_BEGIN_ALLOW_THREADS
    count = rd.consume_batch_queue((void *)(uintptr_t)queue, wait_ms, messages, most);
    Py_END_ALLOW_THREADS
    int is_right = events != NULL;
    for (ssize_t i = 0; i < count && is_right; i++) {
        Message *m = messages[i];
        if (m->err) {
            PyObject *event = Py_BuildValue("(iiLy)", m->partition, m->err, (long long)m->offset,
                                            rd.message_errstr(m));
            is_right = event && !PyList_Append(events, event);
            Py_XDECREF(event);
        } else {
            is_right = SIZE(m) <= (size_t)(INT32_MAX - size);
            size += is_right ? (ssize_t)SIZE(m) : 0;
            rows++;
        }
    }
    if (is_right) block = PyBytes_FromStringAndSize(NULL, rows * 24 + 4 + size);
    else if (!PyErr_Occurred()) PyErr_SetString(PyExc_OverflowError, "messages of 2 GiB");
    int64_t *stamps = block ? (int64_t *)PyBytes_AsString(block) : NULL;
    Py_BEGIN_ALLOW_THREADS
    if (stamps) {
        int64_t *offsets = stamps + rows;
        int32_t *partitions = (int32_t *)(offsets + rows), *ends = partitions + rows;
        char *values = (char *)(ends + rows + 1);
        ssize_t row = 0, at = 0;
        ends[0] = 0;
        for (ssize_t i = 0; i < count; i++) {
            Message *m = messages[i];
            if (m->err) continue;
            stamps[row] = rd.message_timestamp(m, NULL);
            offsets[row] = m->offset;
            partitions[row] = m->partition;
            if (SIZE(m)) memcpy(values + at, m->payload, SIZE(m));
            at += (ssize_t)SIZE(m);
            ends[++row] = (int32_t)at;
        }
    }
    for (ssize_t i = 0; i < count; i++) rd.message_destroy(messages[i]);
    Py_END_ALLOW_THREADS
    free(messages);
    if (block) result = Py_BuildValue("(nOO)", rows, block, events);
    Py_XDECREF(block), Py_XDECREF(events);
    return result;
}

static PyMethodDef methods[] = {
    {"check", check, METH_VARARGS, "Tell which rows are plain trades, and their numbers."},
    {"library", library, METH_VARARGS, "Find librdkafka; return its version."},
    {"take", take, METH_VARARGS, "Return the next messages of a queue as columns."},
    {NULL, NULL, 0, NULL},
};
static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "tickthrottle_speedups", "Compiled parts.", -1, methods, 0, 0, 0, 0,
};
PyMODINIT_FUNC PyInit_tickthrottle_speedups(void) {
    PyObject *module = PyModule_Create(&definition);
    if (module) PyModule_AddIntConstant(module, "INTERFACE", 1);
    return module;
}
