#!/usr/bin/env python3
"""Write the keyword table of the lexer: gen_keywords.py OUTPUT.

A keyword is found by the hash that the lexer computes for every name (ast_name_hash): the low bits
choose a displacement, which makes the slot unique.  No two keywords share a slot.
"""
import sys

# word, token (None: the word itself), behind "+": not a keyword of SQLite's
WORDS = """
ABORT ACTION ADD AFTER ALL ALTER ALWAYS ANALYZE AND AS ASC ATTACH AUTOINCREMENT=AUTOINCR BEFORE
BEGIN BETWEEN BY CASCADE CASE CAST CHECK COLLATE COLUMN=COLUMNKW COMMIT +CONCURRENT CONFLICT
CONSTRAINT CREATE CROSS=JOIN_KW CURRENT CURRENT_DATE=CTIME_KW CURRENT_TIME=CTIME_KW
CURRENT_TIMESTAMP=CTIME_KW DATABASE DEFAULT DEFERRABLE DEFERRED DELETE DESC DETACH DISTINCT DO DROP
EACH ELSE END ESCAPE EXCEPT EXCLUDE EXCLUSIVE EXISTS EXPLAIN FAIL FILTER FIRST FOLLOWING FOR FOREIGN
FROM FULL=JOIN_KW GENERATED GLOB=LIKE_KW GROUP GROUPS HAVING IF IGNORE IMMEDIATE IN INDEX INDEXED
INITIALLY INNER=JOIN_KW INSERT INSTEAD INTERSECT INTO IS ISNULL +ISOLATION JOIN KEY LAST
LEFT=JOIN_KW +LEVEL LIKE=LIKE_KW LIMIT MATCH MATERIALIZED NATURAL=JOIN_KW NO NOT NOTHING NOTNULL NULL
NULLS OF OFFSET ON OR ORDER OTHERS OUTER=JOIN_KW OVER PARTITION PLAN PRAGMA PRECEDING PRIMARY QUERY
RAISE RANGE RECURSIVE REFERENCES REGEXP=LIKE_KW REINDEX RELEASE RENAME REPLACE RESTRICT RETURNING
RIGHT=JOIN_KW ROLLBACK ROW ROWS SAVEPOINT SELECT SET TABLE TEMP TEMPORARY=TEMP THEN TIES TO
TRANSACTION TRIGGER UNBOUNDED UNION UNIQUE UPDATE USING VACUUM VALUES VIEW VIRTUAL WHEN WHERE WINDOW
WITH WITHOUT
""".split()

# Tokens that the driver looks at before it feeds them (driver_soft_keyword in grammar.y).
SOFT = {"WINDOW", "OVER", "FILTER", "ANALYZE", "SET"}
M64 = (1 << 64) - 1
FOLD = 0x2020202020202020


def chunks(word):
    data = word.encode()
    return [int.from_bytes(data[i:i + 8], "little") | FOLD for i in range(0, len(data), 8)]


def name_hash(word):  # ast_name_hash() in ast.h
    h = (len(word) * 0x9E3779B97F4A7C15) & M64
    for chunk in chunks(word):
        h = ((h ^ chunk) * 0xD6E8FEB86659FD93) & M64
        h ^= h >> 32
    return h & 0xFFFFFFFF


def place(words, buckets, slots, shift):
    """Displacements that give every word a slot of its own, or None."""
    by_bucket = {}
    for i, word in enumerate(words):
        by_bucket.setdefault(name_hash(word) % buckets, []).append(i)
    table, shifts = [None] * slots, [0] * buckets
    for bucket, members in sorted(by_bucket.items(), key=lambda b: -len(b[1])):
        for add in range(slots):
            at = [((name_hash(words[i]) >> shift) + add) % slots for i in members]
            if len(set(at)) == len(at) and all(table[a] is None for a in at):
                break
        else:
            return None
        shifts[bucket] = add
        for a, i in zip(at, members):
            table[a] = i
    return table, shifts


def main():
    rows = []
    for entry in WORDS:
        ours = entry.startswith("+")
        word, _, token = entry.lstrip("+").partition("=")
        rows.append((word, token or word, ours))
    words = [r[0] for r in rows]
    for shift in range(7, 24):
        found = place(words, 64, 256, shift)
        if found:
            break
    else:
        sys.exit("gen_keywords: no perfect table; change the hash or the sizes")
    table, shifts = found
    out = ["/* Made by gen_keywords.py. */",
           f"#define KEYWORD_COUNT {len(rows)}u",
           f"#define KEYWORD_SHIFT {shift}",
           "static const Keyword keywords[KEYWORD_COUNT] = {"]
    for word, token, ours in rows:
        parts = (chunks(word) + [FOLD, FOLD])[:3]
        out.append('    {{%s}, "%s", %d, TK_%s, %d, %d},' % (
            ", ".join("0x%xu" % p for p in parts), word, len(word), token, token in SOFT, ours))
    out.append("};")
    out.append("static const u8 keyword_displacement[64] = {%s};" % ", ".join(map(str, shifts)))
    out.append("static const u8 keyword_slot[256] = {%s};" %
               ", ".join(str(0 if t is None else t + 1) for t in table))
    with open(sys.argv[1], "w") as f:
        f.write("\n".join(out) + "\n")


main()
