"""sqlite_files.py -- makes SQLite files of every kind, each from one seed.

make(folder, seed) writes folder/SEED.db (with a -wal or -journal beside it where the seed says so) by
SQLite itself, through Python's sqlite3 module and SQLite's shell, and returns its path.
"""
import os
import random
import shutil
import sqlite3
import subprocess

PAGES = [512, 1024, 2048, 4096, 8192, 16384, 32768, 65536]
ENCODINGS = ["UTF-8", "UTF-16le", "UTF-16be"]
NAMES = ["t", "select", "two words", 'quo"te', "d\u00e9j\u00e0", "T\U0001f600", "a.b", "semi;colon", "x'y",
         "[b]", "`c`", "-- no", "0", "UPPER", "rowid t"]
TYPES = ["", "INTEGER", "INT", "TEXT", "REAL", "BLOB", "NUMERIC", "VARCHAR(10)", "DOUBLE PRECISION",
         "DECIMAL(10, 2)", "ANYTHING GOES", "BOOLEAN", "FLOATING POINT"]
COLLATIONS = ["", " COLLATE NOCASE", " COLLATE RTRIM", " COLLATE BINARY"]
INTS = [0, 1, -1, 2, 127, 128, -128, -129, 32767, 32768, -32769, 8388607, 8388608, -8388609, 2**31 - 1,
        2**31, -2**31 - 1, 2**47 - 1, 2**47, -2**47 - 1, 2**63 - 1, -2**63]
REALS = [0.0, -0.0, 1.0, -1.5, 1e300, -1e-300, 3.0, 1e15, float("inf"), float("-inf"), 2.0**53, 0.1]
LETTERS = "aAbB zZ09'\"\n\t%_\u00df\u20ac\U0001f600"


def quote(name):
    return '"' + name.replace('"', '""') + '"'


class Maker:
    """The database of one seed while it is made."""

    def __init__(self, path, seed):
        self.path, self.random = path, random.Random(seed)
        self.page = PAGES[seed % len(PAGES)]
        self.encoding = ENCODINGS[seed // len(PAGES) % len(ENCODINGS)]
        self.vacuum = seed // 3 % 3
        self.reserved = [0, 0, 0, 8, 32, 255][self.random.randrange(6)]
        if self.page - self.reserved < 480:
            self.reserved = 32
        self.tables = []                                # (name, columns that can be written, rowid?)
        self.big = self.random.random() < 0.3
        self.deep = self.random.random() < 0.25
        self.db = None

    def chance(self, share):
        return self.random.random() < share

    # ---- values ----

    def text(self):
        length = self.random.choice([0, 1, 3, 10, 30, 120, self.page // 4, self.page])
        if self.big and self.chance(0.02):
            length = self.random.choice([20000, 70000, 400000])
        piece = "".join(self.random.choice(LETTERS) for _ in range(min(length, 40)))
        return (piece * (length // max(1, len(piece)) + 1))[:length] if piece else ""

    def value(self):
        kind = self.random.randrange(10)
        if kind == 0:
            return None
        if kind < 3:
            return self.random.choice(INTS)
        if kind == 3:
            return self.random.randrange(-10**6, 10**6)
        if kind < 6:
            return self.random.choice(REALS) if self.chance(0.5) else self.random.uniform(-1e6, 1e6)
        if kind < 9:
            return self.text()
        return self.random.randbytes(self.random.choice([0, 1, 9, 100, self.page + 1]))

    # ---- schemas ----

    def name(self, taken):
        name = self.random.choice(NAMES)
        while name.lower() in taken:
            name += self.random.choice("abcxyz \u00fc")
        taken.add(name.lower())
        return name

    def columns(self):
        count = self.random.choice([1, 2, 3, 5, 8, 8, 70, 300 if self.chance(0.1) else 4])
        taken = set()
        return [self.name(taken) if count < 20 else f"c{i}" for i in range(count)]

    def create_table(self, taken):
        name, columns = self.name(taken), self.columns()
        shape = self.random.choice(["plain", "plain", "ipk", "auto", "keyed", "keyed", "strict"])
        parts, writable = [], list(columns)
        for at, column in enumerate(columns):
            text = quote(column) + " " + self.random.choice(TYPES)
            if shape == "strict":
                text = quote(column) + " " + self.random.choice(["ANY", "ANY", "TEXT", "REAL"])
            if shape in ("ipk", "auto") and at == 0:
                text = quote(column) + " INTEGER PRIMARY KEY" + (" AUTOINCREMENT" if shape == "auto" else "")
            elif self.chance(0.2):
                text += self.random.choice(COLLATIONS)
            if self.chance(0.1):
                text += self.random.choice([" DEFAULT 7", " DEFAULT 'x'", " DEFAULT (1 + 2)", " DEFAULT -1.5"])
            parts.append(text)
        plain = columns[1:] if shape in ("ipk", "auto") else columns
        if shape not in ("strict",) and self.chance(0.4):
            for kind in self.random.sample(["VIRTUAL", "STORED"], self.random.randrange(1, 3)):
                # Of a blob in a UTF-16 file SQLite's upper() may read a byte too many.
                source = quote(self.random.choice(columns))
                made = self.random.choice(["length", "typeof", "upper"])
                parts.append(f"g{kind} {self.random.choice(TYPES)} GENERATED ALWAYS AS "
                             f"(CASE WHEN typeof({source}) <> 'blob' THEN {made}({source}) END) {kind}")
        if shape == "keyed":
            key = self.random.sample(columns, min(len(columns), self.random.randrange(1, 4)))
            words = [quote(c) + self.random.choice(["", " DESC", " COLLATE NOCASE"]) for c in key]
            if self.chance(0.2):
                words.append(quote(key[0]))
            parts.append(f"PRIMARY KEY({', '.join(words)})")
        elif plain and self.chance(0.3):
            parts.append(f"UNIQUE({quote(self.random.choice(plain))})")
        if self.chance(0.1):
            parts.append(f"CHECK({quote(columns[-1])} IS NOT 'never this')")
        tail = " WITHOUT ROWID" if shape == "keyed" else " STRICT" if shape == "strict" else ""
        comment = self.random.choice(["", "", " -- a remark\n", " /* ; ' */ "])
        joint = ", " + comment
        self.db.execute(f"CREATE TABLE {quote(name)} ({comment}{joint.join(parts)}){tail}")
        self.tables.append([name, writable, shape])
        if self.chance(0.5):
            self.fill(self.tables[-1], self.random.randrange(5))
        for _ in range(self.random.choice([0, 0, 1, 2])):
            default = self.random.choice(["", " DEFAULT 3", " DEFAULT 'late'", " DEFAULT 2.0 NOT NULL"])
            kind = "" if shape != "strict" else " ANY"
            column = self.name({c.lower() for c in writable} | {"gvirtual", "gstored"})
            self.db.execute(f"ALTER TABLE {quote(name)} ADD COLUMN {quote(column)}{kind}{default}")
            writable.append(column)

    def create_index(self, at, taken):
        table, columns, _ = self.random.choice(self.tables)
        words = []
        for column in self.random.sample(columns, min(len(columns), self.random.randrange(1, 4))):
            what = quote(column)
            if self.chance(0.15):
                what = self.random.choice([f"typeof({what})", f"coalesce({what}, 'x')", f"CASE WHEN typeof({what}) <> 'blob' THEN {what} + 1 END"])
            words.append(what + self.random.choice(COLLATIONS) + self.random.choice(["", " DESC"]))
        where = f" WHERE {quote(columns[0])} IS NOT NULL" if self.chance(0.2) else ""
        name = self.name(taken) + f" {at}"
        self.db.execute(f"CREATE INDEX {quote(name)} ON {quote(table)}({', '.join(words)}){where}")

    def create_others(self, taken):
        table, columns, _ = self.random.choice(self.tables)
        if self.chance(0.5):
            self.db.execute(f"CREATE VIEW {quote(self.name(taken))} AS SELECT {quote(columns[0])} AS a "
                            f"FROM {quote(table)} -- the end")
        if self.chance(0.5):
            self.db.execute(f"CREATE TRIGGER {quote(self.name(taken))} AFTER DELETE ON {quote(table)} "
                            f"WHEN old.{quote(columns[0])} = 'never' BEGIN SELECT 1; SELECT ';'; END")

    # ---- rows ----

    def fill(self, table, rows):
        name, columns, shape = table
        places = ", ".join("?" * len(columns))
        names = ", ".join(quote(c) for c in columns)
        sql = f"INSERT OR IGNORE INTO {quote(name)}({names}) VALUES({places})"
        for _ in range(rows):
            row = [self.value() for _ in columns]
            if shape in ("ipk", "auto"):
                row[0] = None if self.chance(0.7) else self.random.randrange(-2**62, 2**62)
            try:
                self.db.execute(sql, row)
            except sqlite3.Error:
                pass                                    # STRICT, NOT NULL, an overflow in a key.

    def shrink(self):
        for name, _, _ in self.tables:
            if self.chance(0.4):
                self.db.execute(f"DELETE FROM {quote(name)} WHERE chance(3)")
        if self.tables and self.chance(0.2):
            name = self.tables.pop()[0]
            self.db.execute(f"DROP TABLE {quote(name)}")
        if self.vacuum == 2 and self.chance(0.5):
            self.db.execute("PRAGMA incremental_vacuum(3)").fetchall()

    def body(self):
        taken = {"sqlite"}
        for _ in range(self.random.randrange(1, 6)):
            self.create_table(taken)
        for at in range(self.random.randrange(5)):
            self.create_index(at, taken)
        self.create_others(taken)
        for table in self.tables:
            self.fill(table, self.random.choice([0, 1, 7, 60, 200]))
        if self.deep:
            self.db.execute("CREATE TABLE deep(a INTEGER PRIMARY KEY, b, c)")
            self.db.execute("CREATE INDEX deep_bc ON deep(b, c)")
            rows = ((i, self.random.randrange(10**9), "x" * self.random.randrange(60))
                    for i in range(6000))
            self.db.executemany("INSERT INTO deep VALUES(?, ?, ?)", rows)
        if self.chance(0.7):
            self.shrink()
            for table in self.tables:
                self.fill(table, self.random.choice([0, 3, 20]))
        if self.chance(0.3):
            self.db.execute("ANALYZE")
        self.db.execute(f"PRAGMA user_version={self.random.randrange(-2**31, 2**31)}")
        self.db.execute(f"PRAGMA application_id={self.random.randrange(-2**31, 2**31)}")

    # ---- the file and what lies beside it ----

    def open(self):
        script = f"PRAGMA page_size={self.page};PRAGMA auto_vacuum={self.vacuum};" \
                 f"PRAGMA encoding='{self.encoding}';"
        lines = [script]
        if self.reserved:
            lines.insert(0, f".filectrl reserve_bytes {self.reserved}")
        if self.chance(0.15):
            lines.insert(0, ".dbconfig legacy_file_format on")
        lines.append("CREATE TABLE first(a, b);DROP TABLE first;VACUUM;")
        subprocess.run(["sqlite3", self.path], input="\n".join(lines).encode(), check=True,
                       stdout=subprocess.DEVNULL)
        self.db = sqlite3.connect(self.path, isolation_level=None)
        self.db.execute("PRAGMA synchronous=OFF")
        self.db.create_function("chance", 1, lambda of: self.random.randrange(of) == 0)

    def copy(self, suffix):
        """The files as they are now, while the connection is open: as after a crash."""
        for end in ("", suffix):
            shutil.copyfile(self.path + end, self.path + ".copy" + end)
        self.db.close()
        for end in ("", suffix):
            os.replace(self.path + ".copy" + end, self.path + end)

    def scratch(self):
        """A transaction that is never committed and is too large for memory."""
        self.db.execute("PRAGMA cache_size=2")
        self.db.execute("BEGIN")
        for name, _, _ in self.tables:
            self.db.execute(f"DELETE FROM {quote(name)} WHERE chance(2)")
        for table in self.tables:
            self.fill(table, 40)

    def make(self):
        self.open()
        beside = self.random.choice(["none", "none", "wal", "wal", "journal"])
        if beside == "wal":
            self.db.execute("PRAGMA journal_mode=WAL").fetchall()
            self.db.execute("PRAGMA wal_autocheckpoint=0").fetchall()
        self.db.execute("BEGIN")
        self.body()
        self.db.execute("COMMIT")
        if beside == "wal":
            if self.chance(0.5):
                self.db.execute("PRAGMA wal_checkpoint(RESTART)").fetchall()
                for table in self.tables:
                    self.fill(table, 10)
            if self.chance(0.5):
                self.scratch()
            self.copy("-wal")
        elif beside == "journal":
            self.db.execute("PRAGMA synchronous=" + self.random.choice(["OFF", "FULL"]))
            self.scratch()
            if os.path.exists(self.path + "-journal"):
                self.copy("-journal")
            else:
                self.db.close()
        else:
            self.db.close()
            if self.chance(0.3):
                subprocess.run(["sqlite3", self.path, "VACUUM"], check=True)
        return self.path


def make(folder, seed):
    return Maker(os.path.join(folder, f"{seed}.db"), seed).make()
