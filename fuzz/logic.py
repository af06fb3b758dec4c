#!/usr/bin/env python3
"""Ask Weft the same thing in two ways and report where its own answers differ; no second engine.

    fuzz/logic.py --weft LIB [--checks N | --seeds A B] [--first SEED] [--seconds N]

A seed is a random schema with random rows (the maker of diff.py) in three connections: one with all
the indexes and statistics, one with nothing beyond keys, one where plans are not rewritten (PRAGMA
weft_plans = plain).  A check is one of these:

  partition   FROM f = (FROM f WHERE p) + (... WHERE NOT p) + (... WHERE p IS NULL), as rows, as
              counts, as groups and under DISTINCT;
  truth       count(*) of FROM f WHERE p = the number of rows for which (p) IS TRUE is computed;
  index       a query gives the same rows without the indexes;
  rewriting   ... and with plans that are not rewritten.

Of each the rows are compared as a multiset.  What SQL leaves open is not asked: which of equal
values min() keeps, in which order reals are summed, which of two errors of one row comes first; a
check in which a statement fails is left out and counted.  Exit status: 0 no difference, 1
differences, 2 the call was wrong.
"""
import argparse
import collections
import re
import sys
import time

import diff

WAYS = ["partition", "truth", "index", "rewriting"]


class LogicMaker(diff.Maker):
    """Statements whose answer does not depend on the plan."""

    def subquery(self, scope, depth):
        if self.depth > 1 or not self.tables:
            return self.literal()
        self.depth += 1
        table, alias = self.source(), self.name("s")
        inner = [(alias, table)]
        both = inner + (scope if self.chance(60) else [])
        where = " WHERE " + self.expr(both, depth) if self.chance(75) else ""
        kind = self.r.randrange(3)
        if kind == 0:
            text = "(SELECT count(%s) FROM %s AS %s%s)" % (
                self.column(inner), table.name, alias, where)
        elif kind == 1:
            text = "%sEXISTS (SELECT 1 FROM %s AS %s%s)" % (
                self.pick(["", "NOT "]), table.name, alias, where)
        else:
            text = "(%s %sIN (SELECT %s FROM %s AS %s%s))" % (
                self.expr(scope, depth - 1), self.pick(["", "NOT "]), self.expr(inner, 1),
                table.name, alias, where)
        self.depth -= 1
        return text

    def filling(self):
        """A statement of the setup: no triggers, no changes that look at other rows."""
        kind = self.r.randrange(100)
        if len(self.tables) < 2 or (kind < 6 and len(self.tables) < 4):
            return self.create_table()
        if kind < 20:
            return self.create_index()
        if kind < 26 and len(self.views) < 2:
            return self.create_view()
        table = self.pick(self.tables)
        columns = [c for c in table.columns if c.name != "g"] or table.columns
        rows = ", ".join("(%s)" % ", ".join(self.literal() for _ in columns)
                         for _ in range(self.pick([1, 2, 5])))
        # Behind the greatest rowid there are random ones.
        rows = rows.replace("9223372036854775807", "922337203685477580")
        return "INSERT OR IGNORE INTO %s(%s) VALUES %s" % (
            table.name, ", ".join(c.name for c in columns), rows)


def bag(rows):
    return collections.Counter(map(repr, rows))


def same_values(rows):
    """Rows where 1 and 1.0, 'a' and 'A ' are one: which of equal values stays is not said."""
    return {tuple(map(diff.plain, row)) for row in rows}


class Failed(Exception):
    """A statement of a check ended in an error."""


class Checker:
    def __init__(self, weft, seed):
        self.maker = LogicMaker(seed)
        self.full, self.bare, self.plain = (weft.connect() for _ in range(3))
        self.plain.run("PRAGMA weft_plans = plain")
        self.script, self.asked = [], []
        for _ in range(45):
            self.setup(self.maker.filling())
        self.full.run("ANALYZE")

    def close(self):
        for connection in (self.full, self.bare, self.plain):
            connection.close()

    def setup(self, sql):
        code = self.full.run(sql)[0]
        if code == 0:
            self.script.append(sql)
        # A UNIQUE index refuses rows, so it is wanted on every side.
        sides = [self.plain] if sql.startswith("CREATE INDEX") else [self.plain, self.bare]
        for side in sides:
            if (side.run(sql)[0] == 0) != (code == 0):
                raise RuntimeError("the setup differs: " + sql)
        if code != 0 and sql.startswith("CREATE TABLE"):
            self.maker.tables.pop()
        if code != 0 and sql.startswith("CREATE VIEW"):
            self.maker.views.pop()

    def rows(self, sql, side=None):
        self.asked.append(sql)
        code, _, _, rows = (side or self.full).run(sql)
        if code != 0 or len(rows) == diff.ROWS_READ:
            raise Failed
        return rows

    def check(self):
        """(way, None or what differs)."""
        self.asked = []
        way = self.maker.pick(WAYS)
        return way, getattr(self, way)()

    def partition(self):
        maker = self.maker
        scope, source = maker.from_clause()
        p = maker.expr(scope, 3)
        kind = maker.r.randrange(4)
        items = ", ".join([maker.expr(scope, 1) if kind == 0 else maker.column(scope)
                           for _ in range(maker.r.randrange(1, 4))])
        head = {0: "SELECT " + items, 1: "SELECT count(*)", 2: "SELECT DISTINCT " + items,
                3: "SELECT %s, count(*)" % items}[kind]
        tail = " GROUP BY " + items if kind == 3 else ""
        base = " WHERE (%s)" % maker.expr(scope, 1) if maker.chance(30) else ""
        join = " AND " if base else " WHERE "
        whole = self.rows("%s FROM %s%s%s" % (head, source, base, tail))
        parts = [self.rows("%s FROM %s%s%s%s%s" % (head, source, base, join, test, tail))
                 for test in ("(%s)" % p, "NOT (%s)" % p, "(%s) IS NULL" % p)]
        return self.sums(kind, whole, parts)

    @staticmethod
    def sums(kind, whole, parts):
        together = [row for part in parts for row in part]
        if kind == 0:
            return differ(bag(whole), bag(together))
        if kind == 1:
            return differ(whole[0][0], sum(part[0][0] for part in parts))
        if kind == 2:
            return differ(same_values(whole), same_values(together))
        return differ(sum(row[-1] for row in whole), sum(row[-1] for row in together)) \
            or differ(same_values(r[:-1] for r in whole), same_values(r[:-1] for r in together))

    def truth(self):
        maker = self.maker
        scope, source = maker.from_clause()
        p = maker.expr(scope, 3)
        found = self.rows("SELECT count(*) FROM %s WHERE %s" % (source, p))[0][0]
        truths = self.rows("SELECT ((%s) IS TRUE) FROM %s" % (p, source))
        return differ(found, sum(row[0] for row in truths))

    def query(self):
        maker = self.maker
        scope, source = maker.from_clause()
        where = " WHERE " + maker.expr(scope, 3)
        items = ", ".join(maker.expr(scope, 2) for _ in range(maker.r.randrange(1, 3)))
        # Ordered by an expression that decides nothing: an index may serve it.
        order = " ORDER BY " + maker.column(scope) if maker.chance(40) else ""
        return "SELECT %s FROM %s%s%s" % (items, source, where, order)

    def beside(self, side):
        sql = self.query()
        return differ(bag(self.rows(sql)), bag(self.rows(sql, side)))

    def index(self):
        return self.beside(self.bare)

    def rewriting(self):
        return self.beside(self.plain)


def differ(a, b):
    return None if a == b else "%s beside %s" % (short(a), short(b))


def short(value):
    if isinstance(value, collections.Counter):
        value = sorted(value.items())
    elif isinstance(value, set):
        value = sorted(value, key=repr)
    return str(value)[:300]


def run_seed(weft, seed, checks, tally):
    """How many checks differed."""
    checker, found = Checker(weft, seed), 0
    try:
        for _ in range(checks):
            try:
                way, what = checker.check()
            except Failed:
                tally["left out"] += 1
                continue
            tally[way] += 1
            if what is None:
                continue
            found += 1
            print("-- seed %d, %s: %s" % (seed, way, what))
            print(";\n".join(needed(checker)) + ";\n", flush=True)
        return found
    finally:
        checker.close()


def needed(checker):
    """The statements of the setup on tables that the check names, directly or by a view."""
    names = set(re.findall(r"\b[tv]\d+\b", " ".join(checker.asked)))
    for sql in checker.script:
        if sql.startswith("CREATE VIEW") and sql.split()[2].split("(")[0] in names:
            names |= set(re.findall(r"\b[tv]\d+\b", sql))
    return [s for s in checker.script
            if set(re.findall(r"\b[tv]\d+\b", s.split("VALUES")[0])) & names] + checker.asked


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--weft", required=True)
    parser.add_argument("--seeds", nargs=2, type=int)
    parser.add_argument("--checks", type=int, default=100000)
    parser.add_argument("--of-seed", type=int, default=200, help="checks of a seed")
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--stop-after", type=int, default=5, help="differences")
    parser.add_argument("--seconds", type=int, default=0, help="longest run; 0: no limit")
    args = parser.parse_args()
    weft, tally, differences = diff.Engine(args.weft), collections.Counter(), 0
    seed, begun = args.seeds[0] if args.seeds else args.first, time.monotonic()
    while (seed < args.seeds[1]) if args.seeds else (sum(tally.values()) < args.checks):
        differences += run_seed(weft, seed, args.of_seed, tally)
        seed += 1
        if differences >= args.stop_after:
            break
        if args.seconds and time.monotonic() - begun > args.seconds:
            break
    counts = ", ".join("%s %d" % (way, tally[way]) for way in WAYS + ["left out"])
    print("%d checks (%s), %d differences, next seed %d" % (
        sum(tally.values()), counts, differences, seed))
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
