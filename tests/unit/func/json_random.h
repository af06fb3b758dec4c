/*
 * json_random.h -- random JSON documents and paths for the tests of the JSON functions.
 */
#pragma once

#include "unit/func/func_oracle.h"

/* ---- random documents ---- */

static inline void
put(Buf *out, const char *text)
{
    assert_int_equal(buf_append_text(out, text), OK);
}

static const char *const SCALARS[] = {"null",
                                      "true",
                                      "false",
                                      "0",
                                      "1",
                                      "-1",
                                      "12.5",
                                      "1e5",
                                      "-0.0",
                                      "\"\"",
                                      "\"a\"",
                                      "\"x y\"",
                                      "\"\\n\\u00e4\\ud83d\\ude00\"",
                                      "\"it's\"",
                                      "9223372036854775807",
                                      "9223372036854775808",
                                      "-9223372036854775808",
                                      "1E-3",
                                      "\"\\\"\\\\\\/\"",
                                      "123456789012",
                                      "\"\xC3\xA4\xE2\x82\xAC\"",
                                      "\"long text of more than eleven bytes\""};
static const char *const SCALARS5[] = {"'a'",
                                       "'it\\'s \"q\"'",
                                       "0x1F",
                                       "-0xff",
                                       "+1",
                                       ".5",
                                       "5.",
                                       "-.5",
                                       "+Infinity",
                                       "-Infinity",
                                       "NaN",
                                       "Infinity",
                                       "inf",
                                       "\"\\x41\\v\\0\"",
                                       "'a\\\nb'",
                                       "\"tab\there\"",
                                       "0xFFFFFFFFFFFFFFFF",
                                       "0x1FFFFFFFFFFFFFFFF",
                                       "1.e5",
                                       "qnan",
                                       "\"\\\xE2\x80\xA8z\""};
static const char *const LABELS[] = {"\"a\"",       "\"b\"",      "\"c d\"",     "\"\"",
                                     "\"\\u0061\"", "\"e\\\"f\"", "\"\xC3\xA4\""};
static const char *const LABELS5[] = {"a", "b", "$x_1", "'a'", "\\u0061b", "\xC3\xA4z"};
static const char *const BLANKS[] = {"", "", "", " ", "\n\t", " "};
static const char *const BLANKS5[] = {"/*c*/", "//x\n", "\xC2\xA0", "\v", "\xE2\x80\x83"};

static inline void
random_json(Rng *rng, Buf *out, u32 depth, bool json5)
{
    bool five = json5 && rng_below(rng, 3) == 0;
    if (rng_below(rng, 4) == 0) put(out, BLANKS[rng_below(rng, COUNT_OF(BLANKS))]);
    if (five && rng_below(rng, 3) == 0) put(out, BLANKS5[rng_below(rng, COUNT_OF(BLANKS5))]);
    u64 kind = rng_below(rng, depth == 0 ? 2 : 5);
    if (kind < 2) {
        if (five) {
            put(out, SCALARS5[rng_below(rng, COUNT_OF(SCALARS5))]);
        } else {
            put(out, SCALARS[rng_below(rng, COUNT_OF(SCALARS))]);
        }
    } else {
        bool object = kind > 2;
        put(out, object ? "{" : "[");
        u64 count = rng_below(rng, 4);
        for (u64 i = 0; i < count; i++) {
            if (i > 0) put(out, ",");
            if (object && five) put(out, LABELS5[rng_below(rng, COUNT_OF(LABELS5))]);
            if (object && !five) put(out, LABELS[rng_below(rng, COUNT_OF(LABELS))]);
            if (object && rng_below(rng, 8) == 0)
                put(out, BLANKS[rng_below(rng, COUNT_OF(BLANKS))]);
            if (object) put(out, ":");
            random_json(rng, out, depth - 1, json5);
        }
        if (five && count > 0 && rng_below(rng, 4) == 0) put(out, ",");
        put(out, object ? "}" : "]");
    }
    if (rng_below(rng, 8) == 0) put(out, BLANKS[rng_below(rng, COUNT_OF(BLANKS))]);
    if (five && rng_below(rng, 8) == 0) put(out, BLANKS5[rng_below(rng, COUNT_OF(BLANKS5))]);
}

/* A document in `out`: text, or JSONB made by SQLite, now and then damaged. */
static inline Cell
random_document(Rng *rng, FuncOracle *o, Buf *out)
{
    static const char letters[] = "{}[],:\"'\\ae0.-+x/*nt ";
    u64 kind = rng_below(rng, 12);
    buf_clear(out);
    if (kind == 0) { /* Any value. */
        u8 room[64];
        Cell cell = random_cell(rng, room);
        if (cell.type >= CELL_TEXT && (cell.flags & CELL_ZEROBLOB) == 0) {
            assert_int_equal(buf_append(out, room, cell.bytes), OK);
            if (cell.type == CELL_BLOB && out->bytes > 0) out->p[0] = 0xFF;
            cell.u.p = out->p;
        }
        return cell;
    }
    random_json(rng, out, (u32)rng_below(rng, 4), rng_below(rng, 2) == 0);
    if (kind == 1 && out->bytes > 0) {
        for (u64 n = 1 + rng_below(rng, 2); n > 0; n--) {
            out->p[rng_below(rng, out->bytes)] = (u8)letters[rng_below(rng, sizeof(letters) - 1)];
        }
    }
    if (kind == 2)
        assert_int_equal(buf_append_byte(out, (u8)letters[rng_below(rng, sizeof(letters) - 1)]),
                         OK);
    Cell text = cell_text(out->p, out->bytes), binary;
    if (kind < 8) return text;
    if (func_oracle_call(o, "jsonb", 1, &text, &binary) != OK) return text;
    buf_clear(out);
    assert_int_equal(buf_append(out, binary.u.p, binary.bytes), OK);
    return cell_blob(out->p, out->bytes);
}

static inline Cell
random_path(Rng *rng, Buf *out)
{
    static const char *const steps[] = {".a",           ".b",         "[0]",      "[1]",
                                        "[#]",          "[#-1]",      ".\"c d\"", ".\"\"",
                                        ".\"\\u0061\"", ".ab",        "[9]",      ".\"e\\\"f\"",
                                        ".\xC3\xA4",    ".\xC3\xA4z", ".$x_1",    "[#-2]"};
    static const char *const odd[] = {".",    "[", "[x]", "[#-]", "[0", "x",
                                      ".\"a", "]", "[#",  "[-1]", "..", "[]"};
    buf_clear(out);
    if (rng_below(rng, 15)) put(out, "$");
    for (u64 n = rng_below(rng, 4); n > 0; n--) {
        if (rng_below(rng, 12) == 0) {
            put(out, odd[rng_below(rng, COUNT_OF(odd))]);
        } else {
            put(out, steps[rng_below(rng, COUNT_OF(steps))]);
        }
    }
    if (rng_below(rng, 60) == 0) return cell_null();
    if (rng_below(rng, 60) == 0) return cell_int((i64)rng_below(rng, 5) - 2);
    return cell_text(out->p == NULL ? (const u8 *)"" : out->p, out->bytes);
}
