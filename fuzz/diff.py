#!/usr/bin/env python3
"""Run random SQL on two libraries with the sqlite3 API and report where their answers differ.

    fuzz/diff.py --weft LIB --sqlite LIB [--seeds A B | --statements N] [--first SEED] [--seconds N]

A seed is one connection to an empty in-memory database on each side: a random schema, random rows,
then statements of all kinds.  Rows are compared in order where the statement orders them wholly,
else as a multiset, at most 5,000 of a statement; REAL values to 12 digits, because the order of summing is not part of SQL.  Of
errors the code and the text are compared.  After each change the number of changed rows, and now
and then the whole contents, must agree.  A seed that differs is shortened to the statements that
are needed, and printed as a script.  What is known and explained stands in docs/compatibility.md
and in KNOWN below.

Exit status: 0 no difference, 1 differences, 2 a side crashed or the call was wrong.
"""
import argparse
import ctypes
import os
import random
import re
import sys
import time

ROW, DONE = 100, 101
UTF8, TRANSIENT = 1, ctypes.c_void_p(-1)
ROWS_READ = 5000  # Of one result; of longer ones that many are the same rows only by luck.

# Differences that are explained: pattern of the statement, pattern of what either side said.
KNOWN = [
    # Which of two errors of one row is met first depends on the plan.
    (re.compile(r"."), re.compile(r"^integer overflow$|^malformed JSON$|JSON path error")),
    # Rows before one of a wrong type in a STRICT table stay or go by the journal SQLite needed.
    (re.compile(r"^INSERT|^UPDATE|^REPLACE"), re.compile(r"^cannot store ")),
    # SQLite takes a trigger for another event, next to RETURNING, for one that makes a view writable.
    (re.compile(r" RETURNING "), re.compile(r"because it is a view$")),
    # The same words, without "error in table t after add column: " before them.
    (re.compile(r"^ALTER TABLE .* ADD COLUMN"), re.compile(r"(missing|unknown) datatype for ")),
    # SQLite drops what stands beside a constant that is false under AND before it looks up names.
    (re.compile(r"ISNULL|IS NULL|NOTNULL|NOT NULL|IN \(\)"), re.compile(r"^no such ")),
    # Which row an UPDATE meets first, and so which constraint fails, is the scan's affair.
    (re.compile(r"^UPDATE"), re.compile(r"^(UNIQUE|NOT NULL|CHECK) constraint failed")),
]
# SQLite loses rows of the right side where ON holds a LIKE or GLOB of an integer column.
RIGHT_LIKE = re.compile(r"(RIGHT|FULL) JOIN.* (LIKE|GLOB) ")
# The same of a LEFT join, where an index serves the range that it makes of the LIKE.
LEFT_LIKE = re.compile(r"LEFT JOIN.* (LIKE|GLOB) ")
OWN_SUBQUERY = re.compile(r"^UPDATE (?:OR \w+ )?(\w+) .*\(SELECT .*FROM \1\b")
INSERT_LIMIT = re.compile(r"^(?:INSERT|REPLACE).*? INTO (\w+).* SELECT .* LIMIT \d+")


class Engine:
    """One library; opens connections."""

    def __init__(self, path):
        self.lib = ctypes.CDLL(path, mode=os.RTLD_LOCAL | os.RTLD_NOW | os.RTLD_DEEPBIND)
        p, i, i64, s = ctypes.c_void_p, ctypes.c_int, ctypes.c_int64, ctypes.c_char_p
        for name, result, args in [
            ("open", i, [s, p]), ("close", i, [p]), ("errmsg", s, [p]),
            ("extended_errcode", i, [p]), ("step", i, [p]), ("finalize", i, [p]),
            ("prepare_v2", i, [p, s, i, p, p]), ("column_count", i, [p]),
            ("column_type", i, [p, i]), ("column_int64", i64, [p, i]),
            ("column_double", ctypes.c_double, [p, i]), ("column_blob", p, [p, i]),
            ("column_bytes", i, [p, i]), ("column_name", s, [p, i]), ("changes", i, [p]),
            ("last_insert_rowid", i64, [p]), ("get_autocommit", i, [p]),
            ("libversion", s, []), ("limit", i, [p, i, i]),
        ]:
            function = getattr(self.lib, "sqlite3_" + name)
            function.restype, function.argtypes = result, args
            setattr(self, name, function)

    def connect(self):
        handle = ctypes.c_void_p()
        if self.open(b":memory:", ctypes.byref(handle)) != 0:
            raise RuntimeError("open failed")
        return Connection(self, handle)


class Connection:
    def __init__(self, engine, handle):
        self.engine, self.handle = engine, handle

    def close(self):
        self.engine.close(self.handle)

    def value(self, stmt, at):
        e = self.engine
        kind = e.column_type(stmt, at)
        if kind == 1:
            return e.column_int64(stmt, at)
        if kind == 2:
            number = e.column_double(stmt, at)
            return ("real", "%.12g" % number if number == number else "nan")
        if kind == 5:
            return None
        pointer = e.column_blob(stmt, at)
        count = e.column_bytes(stmt, at)
        data = ctypes.string_at(pointer, count) if count else b""
        return data.decode("utf-8", "surrogateescape") if kind == 3 else ("blob", data)

    def run(self, sql):
        """(code, text, names, rows); code 0: it ran to its end."""
        e, stmt = self.engine, ctypes.c_void_p()
        data = sql.encode("utf-8", "surrogateescape")
        code = e.prepare_v2(self.handle, data, len(data), ctypes.byref(stmt), None)
        if code != 0:
            return e.extended_errcode(self.handle), self.message(), [], []
        count = e.column_count(stmt)
        names = [e.column_name(stmt, i) for i in range(count)]
        rows = []
        code = e.step(stmt)
        while code == ROW and len(rows) < ROWS_READ:
            rows.append(tuple(self.value(stmt, i) for i in range(count)))
            code = e.step(stmt)
        text = ""
        if code not in (ROW, DONE):
            code, text = e.extended_errcode(self.handle), self.message()
        else:
            code = 0
        e.finalize(stmt)
        return code, text, names, rows

    def message(self):
        return (self.engine.errmsg(self.handle) or b"").decode("utf-8", "replace")


class Column:
    def __init__(self, name, kind):
        self.name, self.kind = name, kind


class Table:
    def __init__(self, name, columns, is_view=False):
        self.name, self.columns, self.is_view = name, columns, is_view


KINDS = ["INTEGER", "TEXT", "REAL", "BLOB", "NUMERIC", "", "INT", "VARCHAR(10)", "ANY"]
COLLATES = ["", "", "", "", " COLLATE NOCASE", " COLLATE RTRIM"]
TEXTS = ["", "a", "A", "b", "ab", "Ab ", "abc", "1", "01", "1.0", "1e2", "-5", " 3", "0x10", "x y",
         "é", "ÄÖ", "zz", "null", "%", "_", "a%", "10", "9", "100", "inf"]
JSONS = ["{}", "[]", "[1,2,3]", '{"a":1}', '{"a":{"b":[1,2,{"c":null}]}}', '"x"', "1.5", "null",
         "true", '{"a":"x","b":2.5}', "[[1],[2,[3]]]", '{"k":"\\u00e9"}']


class Maker:
    """Makes statements from a seed."""

    def __init__(self, seed):
        self.r = random.Random(seed)
        self.tables, self.views, self.indexes, self.number = [], [], [], 0
        self.depth = 0
        self.savepoints = 0
        self.in_txn = False
        self.triggers = 0

    def pick(self, items):
        return items[self.r.randrange(len(items))]

    def chance(self, percent):
        return self.r.randrange(100) < percent

    def name(self, prefix):
        self.number += 1
        return "%s%d" % (prefix, self.number)

    # ---- values ----

    def literal(self):
        kind = self.r.randrange(13)
        if kind < 4:
            return str(self.r.randrange(-3, 12))
        if kind == 4:
            return str(self.pick([0, 1, -1, 127, 128, 255, 256, 65535, 2147483647, -2147483648,
                                  4294967296, 9223372036854775807, -9223372036854775807,
                                  1000000, 99999999999]))
        if kind == 5:
            return self.pick(["0.0", "1.0", "-1.5", "2.5", "1e10", "1e-5", "0.1", "123456.789",
                              "9223372036854775808.0", "1e308", "3.0", "-0.0"])
        if kind < 9:
            return "'" + self.pick(TEXTS).replace("'", "''") + "'"
        if kind == 9:
            return self.pick(["x''", "x'00'", "x'61'", "x'3130'", "x'ff00'", "x'616263'"])
        if kind == 10:
            return "NULL"
        if kind == 11:
            return self.pick(["TRUE", "FALSE", "1", "0"])
        return str(self.r.randrange(0, 50))

    def column(self, scope):
        if not scope:
            return self.literal()
        alias, table = self.pick(scope)
        column = self.pick(table.columns)
        return "%s.%s" % (alias, column.name)

    def expr(self, scope, depth=3, aggregates=False):
        if depth <= 0 or self.chance(25):
            return self.column(scope) if self.chance(65) else self.literal()
        sub = lambda: self.expr(scope, depth - 1, aggregates)
        kind = self.r.randrange(26)
        if kind < 4:
            return "(%s %s %s)" % (sub(), self.pick(["+", "-", "*", "/", "%", "||"]), sub())
        if kind < 7:
            return "(%s %s %s)" % (sub(), self.pick(["=", "<>", "<", "<=", ">", ">=", "IS",
                                                     "IS NOT", "==", "IS DISTINCT FROM",
                                                     "IS NOT DISTINCT FROM"]), sub())
        if kind < 9:
            return "(%s %s %s)" % (sub(), self.pick(["AND", "OR"]), sub())
        if kind == 9:
            return "(%s %s)" % (self.pick(["NOT", "-", "+", "~"]), sub())
        if kind == 10:
            return "(%s %s)" % (sub(), self.pick(["ISNULL", "NOTNULL", "IS NULL", "IS NOT NULL",
                                                  "IS TRUE", "IS NOT FALSE"]))
        if kind == 11:
            return "(%s %sBETWEEN %s AND %s)" % (sub(), self.pick(["", "NOT "]), sub(), sub())
        if kind == 12:
            # Of an empty list SQLite forgets the left side with its errors.
            items = ", ".join(sub() for _ in range(self.r.randrange(0, 4)))
            left = sub() if items else self.literal()
            return "(%s %sIN (%s))" % (left, self.pick(["", "NOT "]), items)
        if kind == 13:
            return "(%s %s%s %s)" % (sub(), self.pick(["", "NOT "]), self.pick(["LIKE", "GLOB"]),
                                     self.pick(["'a%'", "'%b%'", "'_'", "'A*'", "'[a-c]*'",
                                                "'%'", sub()]))
        if kind < 16:
            whens = " ".join("WHEN %s THEN %s" % (sub(), sub())
                             for _ in range(self.r.randrange(1, 3)))
            base = sub() + " " if self.chance(30) else ""
            other = " ELSE " + sub() if self.chance(60) else ""
            return "CASE %s%s%s END" % (base, whens, other)
        if kind == 16:
            return "CAST(%s AS %s)" % (sub(), self.pick(["INTEGER", "TEXT", "REAL", "BLOB",
                                                         "NUMERIC"]))
        if kind == 17:
            return "(%s COLLATE %s)" % (sub(), self.pick(["NOCASE", "BINARY", "RTRIM"]))
        if kind < 22:
            return self.function(sub)
        if kind == 22:
            return "(%s & %s)" % (sub(), sub()) if self.chance(50) else \
                "(%s %s %s)" % (sub(), self.pick(["|", "<<", ">>"]), sub())
        if kind == 23:
            return "((%s, %s) %s (%s, %s))" % (sub(), sub(), self.pick(["=", "<", ">=", "IS"]),
                                               sub(), sub())
        return self.subquery(scope, depth - 1)

    def function(self, sub):
        kind = self.r.randrange(28)
        one = ["abs", "length", "lower", "upper", "typeof", "quote", "hex", "trim", "ltrim",
               "rtrim", "unicode", "sign", "likely", "octet_length"]
        if kind < 10:
            return "%s(%s)" % (self.pick(one), sub())
        if kind < 13:
            return "%s(%s, %s)" % (self.pick(["coalesce", "ifnull", "nullif", "max", "min",
                                              "instr", "trim", "round"]), sub(), sub())
        if kind == 13:
            return "substr(%s, %s, %s)" % (sub(), sub(), sub())
        if kind == 14:
            return "replace(%s, %s, %s)" % (sub(), sub(), sub())
        if kind == 15:
            return "iif(%s, %s, %s)" % (sub(), sub(), sub())
        if kind == 16:
            return "printf(%s, %s)" % (self.pick(["'%d'", "'%s'", "'%5.2f'", "'%x'", "'%q'",
                                                  "'%,d'", "'%e'", "'%g'", "'%05d'", "'%-6s|'"]),
                                       sub())
        if kind == 17:
            return "round(%s, %s)" % (sub(), self.pick(["0", "1", "2", "5"]))
        if kind == 18:
            return "max(%s, %s, %s)" % (sub(), sub(), sub())
        if kind == 19:
            return "char(%s)" % self.pick(["65", "97, 98", "233"])
        if kind == 20:
            return "unhex(%s)" % self.pick(["'4142'", "'zz'", "hex(%s)" % sub()])
        if kind < 24:
            return "json_extract('%s', '%s')" % (self.pick(JSONS).replace("'", "''"),
                                                 self.pick(["$", "$.a", "$[1]", "$.a.b[2].c",
                                                            "$[#-1]", "$.zz"]))
        if kind == 24:
            return "json_type('%s', '%s')" % (self.pick(JSONS), self.pick(["$", "$.a", "$[0]"]))
        if kind == 25:
            return "json_array(%s, %s)" % (self.literal_json(), self.literal_json())
        if kind == 26:
            return "json_object('k', %s)" % self.literal_json()
        return "%s(%s, %s)" % (self.pick(["date", "datetime", "time", "julianday"]),
                               self.pick(["'2024-02-29 13:14:15'", "0", "'2000-01-01'",
                                          "2460000.5"]),
                               self.pick(["'+1 day'", "'start of month'", "'-1 year'",
                                          "'weekday 1'", "'unixepoch'", "'+90 minutes'"]))

    def literal_json(self):
        return self.pick(["1", "2.5", "'x'", "NULL", "'[1]'", "json('[1,2]')", "-0.0"])

    def subquery(self, scope, depth):
        if self.depth > 1 or not self.tables:
            return self.literal()
        self.depth += 1
        alias = self.name("s")
        table = self.source()
        inner = [(alias, table)]
        both = inner + (scope if self.chance(60) else [])
        kind = self.r.randrange(4)
        where = " WHERE " + self.expr(both, depth) if self.chance(75) else ""
        if kind == 0:
            text = "(SELECT %s(%s) FROM %s AS %s%s)" % (
                self.pick(["count", "min", "max", "sum", "total"]), self.column(inner),
                table.name, alias, where)
        elif kind == 1:
            text = "%sEXISTS (SELECT 1 FROM %s AS %s%s)" % (
                self.pick(["", "NOT "]), table.name, alias, where)
        elif kind == 2:
            text = "(%s %sIN (SELECT %s FROM %s AS %s%s))" % (
                self.expr(scope, depth - 1), self.pick(["", "NOT "]), self.expr(inner, 1),
                table.name, alias, where)
        else:
            value = self.column(inner)
            text = "(SELECT %s FROM %s AS %s%s ORDER BY 1 LIMIT 1)" % (
                value, table.name, alias, where)
        self.depth -= 1
        return text

    # ---- queries ----

    def source(self):
        return self.pick(self.tables + self.views)

    def from_clause(self):
        scope, text = [], ""
        for i in range(self.pick([1, 1, 1, 2, 2, 3])):
            table, alias = self.source(), self.name("q")
            item = "%s AS %s" % (table.name, alias)
            if i == 0:
                text = item
            else:
                join = self.pick([" JOIN ", " LEFT JOIN ", " LEFT JOIN ", ", ", " CROSS JOIN ",
                                  " RIGHT JOIN ", " FULL JOIN "])
                text += join + item
                if join != ", " and join != " CROSS JOIN ":
                    on = "%s = %s.%s" % (self.column(scope), alias, self.pick(table.columns).name)
                    if self.chance(25):
                        on += " AND " + self.expr(scope + [(alias, table)], 1)
                    text += " ON " + on
            scope.append((alias, table))
        return scope, text

    def aggregate(self, scope):
        kind = self.r.randrange(9)
        arg = self.expr(scope, 1)
        distinct = "DISTINCT " if self.chance(20) else ""
        where = " FILTER (WHERE %s)" % self.expr(scope, 1) if self.chance(15) else ""
        if kind == 0:
            return "count(*)" + where
        if kind == 8:
            return "group_concat(%s%s ORDER BY 1)%s" % ("", arg, where) if False else \
                "group_concat(%s, ',' ORDER BY %s)%s" % (arg, arg, where)
        return "%s(%s%s)%s" % (self.pick(["count", "sum", "min", "max", "avg", "total", "count"]),
                               distinct, arg, where)

    def window(self, scope):
        name = self.pick(["row_number()", "rank()", "dense_rank()", "ntile(3)", "cume_dist()",
                          "lag(%s)", "lead(%s, 2)", "first_value(%s)", "last_value(%s)",
                          "nth_value(%s, 2)", "sum(%s)", "count(%s)", "min(%s)", "max(%s)",
                          "total(%s)"])
        if "%s" in name:
            name = name % self.expr(scope, 1)
        part = "PARTITION BY %s " % self.expr(scope, 1) if self.chance(50) else ""
        # Wholly ordered, so that the answer does not depend on the plan.
        keys = ", ".join("%s.%s%s" % (alias, c.name, self.pick(["", " DESC"]))
                         for alias, table in scope for c in table.columns)
        frame = ""
        if self.chance(15):
            alias, table = self.pick(scope)
            keys = "%s.%s%s" % (alias, self.pick(table.columns).name,
                                self.pick(["", " DESC", " NULLS LAST"]))
            name = self.pick(["count(*)", "count(%s)", "min(%s)", "max(%s)", "rank()"])
            name = name % self.column(scope) if "%s" in name else name
            low = self.pick(["UNBOUNDED PRECEDING", "2 PRECEDING", "CURRENT ROW", "1.5 PRECEDING",
                             "1 FOLLOWING"])
            high = self.pick(["UNBOUNDED FOLLOWING", "3 FOLLOWING", "2.5 FOLLOWING"])
            frame = " RANGE BETWEEN %s AND %s%s" % (low, high, self.pick(
                ["", "", " EXCLUDE GROUP"]))
        elif self.chance(50):
            low = self.pick(["UNBOUNDED PRECEDING", "2 PRECEDING", "CURRENT ROW"])
            high = self.pick(["UNBOUNDED FOLLOWING", "1 FOLLOWING", "CURRENT ROW"])
            frame = " %s BETWEEN %s AND %s%s" % (
                self.pick(["ROWS", "GROUPS"]), low, high,
                self.pick(["", "", " EXCLUDE CURRENT ROW", " EXCLUDE TIES", " EXCLUDE GROUP"]))
        return "%s OVER (%sORDER BY %s%s)" % (name, part, keys, frame)

    def select_core(self, columns):
        scope, from_text = self.from_clause()
        where = " WHERE " + self.expr(scope, 3) if self.chance(65) else ""
        kind = self.r.randrange(10)
        if kind < 2:  # Grouped.
            # A constant may be taken for the number of a result column.
            keys = ["coalesce(%s, %s)" % (self.column(scope), self.expr(scope, 1))
                    if self.chance(40) else self.column(scope)
                    for _ in range(self.pick([1, 1, 2]))]
            items = [self.pick(keys) if self.chance(50) else self.aggregate(scope)
                     for _ in range(columns)]
            having = " HAVING " + self.aggregate(scope) + self.pick([" > 1", " IS NOT NULL"]) \
                if self.chance(30) else ""
            tail = " GROUP BY %s%s" % (", ".join(keys), having)
        elif kind == 2:
            items = [self.aggregate(scope) for _ in range(columns)]
            tail = ""
        elif kind == 3 and self.windows:
            items = [self.window(scope) if i == 0 else self.expr(scope, 1)
                     for i in range(columns)]
            tail = ""
        else:
            items = [self.expr(scope, 2) for _ in range(columns)]
            tail = ""
        distinct = "DISTINCT " if self.chance(15) else ""
        return "SELECT %s%s FROM %s%s%s" % (distinct, ", ".join(items), from_text, where, tail)

    def select(self):
        columns = self.r.randrange(1, 4)
        text = self.select_core(columns)
        while self.chance(15):
            text += self.pick([" UNION ", " UNION ALL ", " INTERSECT ", " EXCEPT "])
            text += self.select_core(columns)
        if self.chance(6):
            return self.recursive()
        if self.chance(6):
            return self.json_join()
        if self.chance(12):
            name = self.name("w")
            text = "WITH %s(c) AS (SELECT %s FROM %s) %s" % (
                name, "count(*)", self.source().name, text) if self.chance(50) else \
                "SELECT * FROM (%s)" % text
        if self.chance(45):
            text += " ORDER BY " + ", ".join(
                str(i + 1) + self.pick(["", " DESC", " NULLS LAST", " ASC", " DESC NULLS FIRST",
                                        " NULLS FIRST", " DESC NULLS LAST"])
                for i in range(columns))
            if self.chance(50):
                text += " LIMIT %d" % self.r.randrange(0, 8)
                if self.chance(30):
                    text += " OFFSET %d" % self.r.randrange(0, 5)
        return text

    def recursive(self):
        name, alias = self.name("w"), self.name("q")
        table = self.source()
        scope = [(alias, table), ("r", Table("r", [Column("n", ""), Column("v", "")]))]
        join = self.pick([" JOIN %s AS %s ON %s.%s = r.n" % (
            table.name, alias, alias, self.pick(table.columns).name),
                          " LEFT JOIN %s AS %s ON %s.%s > r.n" % (
                              table.name, alias, alias, self.pick(table.columns).name), ""])
        value = self.expr(scope if join else scope[1:], 1)
        limit = ", LIMIT" if False else ""
        union = self.pick([" UNION ", " UNION ALL "])
        inner = "SELECT %s, %s UNION ALL SELECT 2, %s" % (
            self.pick(["0", "1", "1"]), self.literal(), self.literal())
        text = "WITH RECURSIVE %s(n, v) AS (%s%sSELECT r.n + 1, %s FROM %s AS r%s WHERE r.n < %d%s)" \
            % (name, inner, union, value, name, join, self.r.randrange(2, 5), limit)
        columns = self.pick(["n, v", "count(*), max(n)", "v, typeof(v)", "n, count(v)"])
        tail = " GROUP BY n" if columns == "n, count(v)" else ""
        return "%s SELECT %s FROM %s%s ORDER BY 1, 2" % (text, columns, name, tail)

    def json_join(self):
        table, alias = self.source(), self.name("q")
        scope = [(alias, table), ("j", Table("j", [Column(c, "") for c in (
            "key", "value", "type", "atom", "fullkey", "path")]))]
        json = self.pick(JSONS)
        source = self.pick(["json_each('%s')" % json, "json_tree('%s')" % json,
                            "json_each('%s', '$.a')" % json, "json_tree('%s', '$[1]')" % json,
                            "json_each(json_array(%s.%s, 7))" % (
                                alias, "c0" if not table.is_view else "x0")])
        if "json_array" in source:
            source = "json_each(CASE WHEN typeof(%s.%s) = 'blob' THEN '[]' ELSE json_array(%s.%s) END)" % (
                (alias, self.pick(table.columns).name) * 2)
        join = self.pick([", ", " JOIN ", " LEFT JOIN "])
        on = " ON j.value = %s.%s" % (alias, self.pick(table.columns).name) \
            if join == " LEFT JOIN " else ""
        return "SELECT j.key, j.value, j.type, j.fullkey, j.path, %s FROM %s AS %s%s%s AS j%s" \
            " WHERE %s" % (self.expr(scope, 2), table.name, alias, join, source, on,
                           self.expr(scope, 2))

    # ---- schema and changes ----

    def create_table(self):
        name = self.name("t")
        columns = [Column("c%d" % i, self.pick(KINDS)) for i in range(self.r.randrange(1, 6))]
        strict = self.chance(8)
        parts, has_key = [], False
        for c in columns:
            if strict:
                c.kind = self.pick(["INTEGER", "TEXT", "REAL", "BLOB", "ANY"])
            text = "%s %s" % (c.name, c.kind)
            if not has_key and self.chance(25):
                text += " PRIMARY KEY"
                has_key = True
            elif self.chance(10):
                text += " UNIQUE"
            if self.chance(10):
                text += " NOT NULL" + self.pick(["", " ON CONFLICT IGNORE", " ON CONFLICT REPLACE"])
            if self.chance(15):
                text += " DEFAULT " + self.pick(["1", "'d'", "NULL", "2.5", "(1+1)"])
            if self.chance(6):
                text += " CHECK (%s)" % ("length(%s) < 5" % c.name if self.chance(50)
                                         else "%s <> 7" % c.name)
            text += self.pick(COLLATES)
            parts.append(text)
        if self.chance(12) and len(columns) > 1:
            g = Column("g", "")
            parts.append("g AS (%s) %s" % (self.expr([(name, Table(name, columns))], 1)
                                           .replace(name + ".", ""),
                                           self.pick(["VIRTUAL", "STORED"])))
            columns.append(g)
        if not has_key and len(columns) > 2 and self.chance(25):
            keys = self.r.sample([c for c in columns if c.name != "g"], 2)
            parts.append("%s (%s)" % (self.pick(["PRIMARY KEY", "PRIMARY KEY", "UNIQUE"]), ", ".join(
                c.name + self.pick(["", " DESC", " COLLATE NOCASE"]) for c in keys)))
            has_key = parts[-1].startswith("PRIMARY")
        options = []
        if has_key and self.chance(40):
            options.append("WITHOUT ROWID")
        if strict:
            options.append("STRICT")
        self.tables.append(Table(name, columns))
        return "CREATE TABLE %s(%s) %s" % (name, ", ".join(parts), ", ".join(options))

    def create_index(self):
        table = self.pick(self.tables)
        name = self.name("i")
        keys = []
        for _ in range(self.r.randrange(1, 3)):
            key = self.pick(table.columns).name
            if self.chance(15):
                key = "(%s + 1)" % key
            keys.append(key + self.pick(["", "", " DESC", " COLLATE NOCASE"]))
        where = " WHERE %s %s" % (self.pick(table.columns).name,
                                  self.pick(["IS NOT NULL", "> 1", "= 'a'"])) \
            if self.chance(15) else ""
        self.indexes.append(name)
        return "CREATE %sINDEX %s ON %s(%s)%s" % ("UNIQUE " if self.chance(12) else "", name,
                                                  table.name, ", ".join(keys), where)

    def create_view(self):
        table, name = self.pick(self.tables), self.name("v")
        columns = [Column("x%d" % i, "") for i in range(2)]
        scope = [("a", table)]
        text = "CREATE VIEW %s(x0, x1) AS SELECT %s, %s FROM %s AS a%s" % (
            name, self.expr(scope, 1), self.column(scope), table.name,
            " WHERE " + self.expr(scope, 1) if self.chance(50) else "")
        self.views.append(Table(name, columns, True))
        return text

    def create_trigger(self):
        self.triggers += 1
        table, other = self.pick(self.tables), self.pick(self.tables)
        time = self.pick(["BEFORE", "AFTER"])
        if self.views and self.chance(35):
            table, time = self.pick(self.views), "INSTEAD OF"
        event = self.pick(["INSERT", "UPDATE", "DELETE"])
        row = "new" if event != "DELETE" else "old"
        # SQLite computes NEW's generated columns of a BEFORE trigger from the columns it uses only.
        value = "%s.%s" % (row, self.pick([c for c in table.columns if c.name != "g"]).name)
        if self.chance(30):
            value = "(%s %s %s)" % (value, self.pick(["=", "<", "||", "IS", "+"]), self.literal())
        column = self.pick(other.columns).name
        body = self.pick([
            "INSERT OR IGNORE INTO %s(%s) VALUES (%s)" % (other.name, column, value),
            "UPDATE OR IGNORE %s SET %s = %s WHERE %s IS NULL" % (other.name, column, value,
                                                                   column),
            "DELETE FROM %s WHERE %s = %s" % (other.name, column, value),
            "SELECT CASE WHEN %s = 8 THEN RAISE(%s) END" % (
                value, self.pick(["IGNORE", "ABORT, 'no 8'", "FAIL, 'f'"])),
        ])
        when = " WHEN %s IS NOT NULL" % value if self.chance(40) else ""
        return "CREATE TRIGGER %s %s %s ON %s%s BEGIN %s; END" % (
            self.name("tr"), time, event, table.name, when, body)

    def target(self):
        return self.pick(self.views) if self.views and self.chance(8) else self.pick(self.tables)

    def insert(self):
        table = self.target()
        columns = [c for c in table.columns if c.name != "g"] or table.columns
        if self.chance(30):
            columns = self.r.sample(columns, self.r.randrange(1, len(columns) + 1))
        names = ", ".join(c.name for c in columns)
        conflict = self.pick(["", "", "", "OR IGNORE ", "OR REPLACE ", "OR FAIL ", "OR ABORT ",
                              "OR ROLLBACK "])
        if self.chance(20):
            source = "SELECT %s FROM %s AS z ORDER BY 1" % (
                ", ".join(self.expr([("z", self.source_of_few())], 1) for _ in columns),
                self.few.name)
            source += ", ".join([""] + [str(i + 2) for i in range(len(columns) - 1)])
            source += " LIMIT 5"
        else:
            source = "VALUES " + ", ".join(
                "(%s)" % ", ".join(self.literal() for _ in columns)
                for _ in range(self.pick([1, 1, 2, 5])))
            # Beyond the greatest rowid a random one is taken.
            source = source.replace("9223372036854775807", "922337203685477580")
        upsert = ""
        if conflict == "" and self.chance(15):
            target = self.pick(columns).name
            scope = [("excluded", table), (table.name, table)]
            where = " WHERE " + self.expr(scope, 2) if self.chance(40) else ""
            upsert = self.pick([" ON CONFLICT DO NOTHING",
                                " ON CONFLICT(%s) DO UPDATE SET %s = %s%s" % (
                                    target, self.pick(columns).name,
                                    "excluded." + target if self.chance(50) else
                                    self.expr(scope, 2), where)])
            if source.startswith("SELECT"):
                upsert = ""
        returning = " RETURNING *" if self.chance(12) else ""
        return "INSERT %sINTO %s(%s) %s%s%s" % (conflict, table.name, names, source, upsert,
                                                returning)

    def source_of_few(self):
        self.few = self.source()
        return self.few

    def update(self):
        table = self.target()
        scope = [(table.name, table)]
        columns = [c for c in table.columns if c.name != "g"] or table.columns
        sets = ", ".join("%s = %s" % (c.name, self.expr(scope, 2))
                         for c in self.r.sample(columns, self.r.randrange(1, min(3, len(columns)) + 1)))
        where = " WHERE " + self.expr(scope, 2) if self.chance(85) else ""
        # Triggers that change other rows see them in the order of the join.
        if self.chance(12) and not self.triggers:
            other, alias = self.source(), self.name("f")
            # One partner at most, so that it does not matter which is taken.
            key = self.pick(other.columns).name
            scope2 = [(table.name, table), (alias, Table(alias, [Column("k", ""), Column("n", "")]))]
            return "UPDATE %s SET %s = %s FROM (SELECT typeof(%s) AS k, count(*) AS n FROM %s " \
                "GROUP BY 1) AS %s WHERE %s.k = typeof(%s.%s)" % (
                    table.name, self.pick(columns).name, self.expr(scope2, 1), key, other.name,
                    alias, alias, table.name, self.pick(columns).name)
        # With OR REPLACE and OR IGNORE which row stays depends on the order of the scan.
        return "UPDATE %s%s SET %s%s" % (self.pick(["", "", "", "OR ABORT ", "OR ROLLBACK "]),
                                         table.name, sets, where)

    def delete(self):
        table = self.pick(self.tables)
        return "DELETE FROM %s WHERE %s%s" % (table.name, self.expr([(table.name, table)], 2),
                                              " RETURNING 1" if self.chance(10) else "")

    def alter(self):
        table = self.pick(self.tables)
        kind = self.r.randrange(4)
        if kind == 0:
            name = self.name("n")
            table.columns.append(Column(name, ""))
            return "ALTER TABLE %s ADD COLUMN %s %s" % (table.name, name, self.pick(
                ["", "INTEGER DEFAULT 3", "TEXT", "REAL DEFAULT 1"]))
        if kind == 1:
            name, old = self.name("r"), table.name
            table.name = name
            return "ALTER TABLE %s RENAME TO %s" % (old, name)
        column = self.pick(table.columns)
        if kind == 2:
            name, old = self.name("m"), column.name
            column.name = name
            return "ALTER TABLE %s RENAME COLUMN %s TO %s" % (table.name, old, name)
        if len(table.columns) > 1:
            table.columns.remove(column)
        return "ALTER TABLE %s DROP COLUMN %s" % (table.name, column.name)

    def transaction(self):
        kind = self.r.randrange(5)
        if kind == 0:
            return self.pick(["BEGIN", "BEGIN IMMEDIATE"])
        if kind == 1:
            return self.pick(["COMMIT", "ROLLBACK", "COMMIT"])
        if kind == 2:
            return "SAVEPOINT sp%d" % self.r.randrange(3)
        return self.pick(["RELEASE sp%d", "ROLLBACK TO sp%d"]) % self.r.randrange(3)

    def statement(self):
        kind = self.r.randrange(100)
        if len(self.tables) < 2 or (kind < 2 and len(self.tables) < 6):
            return self.create_table()
        if kind < 5:
            return self.create_index()
        if kind < 6:
            return self.create_view()
        if kind < 7:
            return self.create_trigger()
        if kind < 9:
            return self.alter() if self.chance(40) else self.transaction()
        if kind < 11:
            return self.transaction()
        if kind < 30:
            return self.insert()
        if kind < 36:
            return self.update()
        if kind < 40:
            return self.delete()
        return self.select()

    windows = True


def is_ordered(sql):
    """Does the statement order its rows wholly, by all its columns?"""
    return re.search(r" ORDER BY 1[^()]*$", sql) is not None


def ranked(value):
    """What an order tells of a value, under any of the collations."""
    if isinstance(value, str):
        return re.sub("[A-Z]", lambda m: m.group(0).lower(), value).rstrip(" ")
    if isinstance(value, tuple) and value[0] == "real":
        return float(value[1])
    return float(value) if isinstance(value, int) else value


def same_rows(sql, a, b):
    if a == b:
        return True
    if len(a) == len(b) == ROWS_READ:
        return True  # The beginnings of two long results, each in its order.
    if "group_concat" in sql:
        a, b = [tuple(map(plain, row)) for row in a], [tuple(map(plain, row)) for row in b]
    # Rows that are equal under the order may stand in any order.
    if is_ordered(sql) and [tuple(map(ranked, r)) for r in a] != [tuple(map(ranked, r)) for r in b]:
        return False
    if LOOSE_NUMBERS.search(sql):
        a, b = [tuple(map(plain, row)) for row in a], [tuple(map(plain, row)) for row in b]
    return sorted(map(repr, a)) == sorted(map(repr, b))


# Of rows that are equal one is kept: 1 or 1.0, 'a' or 'A' under NOCASE, which of them is not said.
LOOSE_NUMBERS = re.compile(r"DISTINCT|UNION|RECURSIVE|INTERSECT|EXCEPT|GROUP BY|LIMIT|(min|max)\(")


def plain(value):
    if isinstance(value, str):
        # group_concat(): ties may stand in any order.
        return ",".join(sorted(part.rstrip(" ") for part in ranked(value).split(",")))
    if isinstance(value, tuple) and value[0] == "real" and float(value[1]).is_integer():
        return "%.12g" % (float(value[1]) + 0.0)
    return "%.12g" % value if isinstance(value, int) else value


def is_known(sql, a, b):
    for statement, said in KNOWN:
        if statement.search(sql) and (said.search(a[1]) or said.search(b[1])):
            return True
    return False


class Pair:
    """Both connections; runs statements on each and compares."""

    def __init__(self, weft, peer):
        self.a, self.b = weft.connect(), peer.connect()
        self.views = {}

    def expanded(self, sql):
        """The statement with the texts of the views that it names."""
        parts, seen = [sql], set()
        for part in parts:
            for name in set(re.findall(r"\bv\d+\b", part)) - seen:
                seen.add(name)
                parts.append(self.views.get(name, ""))
        return " ".join(parts)

    def by_its_plan(self, sql):
        """Has the plan decided what this statement wrote?  SQLite runs a subquery on the updated
        table when a row first needs it: it may meet rows that are changed already.  And of rows
        that are equal under ORDER BY, LIMIT takes any."""
        table = OWN_SUBQUERY.search(sql) or INSERT_LIMIT.search(sql)
        if table is None:
            return False
        read = "SELECT * FROM %s" % table.group(1)
        return not same_rows(read, self.a.run(read)[3], self.b.run(read)[3])

    def close(self):
        self.a.close()
        self.b.close()

    def run(self, sql):
        """None, or what differs."""
        a, b = self.a.run(sql), self.b.run(sql)
        if a[0] == b[0] == 1 and a[1].startswith("no such") and b[1].startswith("no such"):
            return None  # Which of two wrong names is met first.
        if a[0] == b[0] == 3091:
            return "known"
        if (a[0] == 0) != (b[0] == 0):
            if is_known(sql, a, b):
                return "known"
            return "weft %s, sqlite %s" % (a[:2], b[:2])
        if a[0] != b[0] or a[1] != b[1]:
            return "known" if is_known(sql, a, b) else "weft %s, sqlite %s" % (a[:2], b[:2])
        if a[0] != 0 and sql.startswith("ALTER") and not self.a.engine.get_autocommit(self.a.handle):
            return "known"  # SQLite forgets to take back the schema in memory.
        if sql.startswith("CREATE VIEW"):
            self.views[sql.split()[2].split("(")[0]] = sql
        if not same_rows(sql, a[3], b[3]):
            whole = self.expanded(sql)
            if RIGHT_LIKE.search(whole):
                return "known"
            if LEFT_LIKE.search(whole) and len(b[3]) < len(a[3]):
                return "known"
            return "weft %s, sqlite %s" % (a[3][:12], b[3][:12])
        if not sql.startswith(("SELECT", "WITH")):
            for what in ("changes", "get_autocommit", "last_insert_rowid"):
                x = getattr(self.a.engine, what)(self.a.handle)
                y = getattr(self.b.engine, what)(self.b.handle)
                if x != y and what == "last_insert_rowid" and min(x, y) > 1 << 40:
                    return "known"  # Behind the greatest rowid there are random ones.
                if x != y:
                    return "%s: weft %d, sqlite %d" % (what, x, y)
        return "known" if self.by_its_plan(sql) else None


def replay(weft, peer, script):
    """Index of the first statement that differs, and how."""
    pair = Pair(weft, peer)
    try:
        for at, sql in enumerate(script):
            found = pair.run(sql)
            if found is not None:
                return at, found
        return None, None
    finally:
        pair.close()


def shorten(weft, peer, script, first):
    """Drop statements as long as the last one still differs, and not for want of a table."""
    last = script[-1]
    kept = script[:-1]
    step = max(1, len(kept) // 2)
    while step >= 1:
        at = 0
        while at < len(kept):
            tried = kept[:at] + kept[at + step:]
            where, found = replay(weft, peer, tried + [last])
            lost = found is not None and "no such" in found and "no such" not in first
            if where == len(tried) and found != "known" and not lost:
                kept = tried
            else:
                at += step
        step //= 2
    return kept + [last]


def contents(maker):
    return ["SELECT * FROM %s" % t.name for t in maker.tables]


def run_seed(weft, peer, seed, statements, windows):
    """(statements run, script or None, what differs)."""
    maker = Maker(seed)
    maker.windows = windows
    pair, script = Pair(weft, peer), []
    try:
        for i in range(statements):
            sql = maker.statement()
            todo = [sql]
            if i % 10 == 9:
                todo += contents(maker)
            for sql in todo:
                script.append(sql)
                found = pair.run(sql)
                if found == "known":
                    return i, None, None
                if found is not None:
                    return i, script, found
        return statements, None, None
    finally:
        pair.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--weft", required=True)
    parser.add_argument("--sqlite", required=True)
    parser.add_argument("--seeds", nargs=2, type=int)
    parser.add_argument("--statements", type=int, default=50000)
    parser.add_argument("--length", type=int, default=120, help="statements of a seed")
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--stop-after", type=int, default=5, help="differences")
    parser.add_argument("--seconds", type=int, default=0, help="longest run; 0: no limit")
    parser.add_argument("--no-windows", action="store_true")
    args = parser.parse_args()
    weft, peer = Engine(args.weft), Engine(args.sqlite)
    seed = args.seeds[0] if args.seeds else args.first
    ran, differences, begun = 0, 0, time.monotonic()
    while (seed < args.seeds[1]) if args.seeds else (ran < args.statements):
        count, script, found = run_seed(weft, peer, seed, args.length, not args.no_windows)
        ran += count
        if script is not None:
            differences += 1
            short = shorten(weft, peer, script, found)
            _, again = replay(weft, peer, short)
            print("-- seed %d: %s" % (seed, again or found))
            print(";\n".join(short) + ";\n", flush=True)
            if differences >= args.stop_after:
                break
        seed += 1
        if args.seconds and time.monotonic() - begun > args.seconds:
            break
    print("%d statements, %d differences, next seed %d" % (ran, differences, seed))
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
