# Runs a query in DuckDB, whose tables are streams of the dsi process that started this: sql.go says how they talk.
# Standard input has the task, standard output gets the result, and standard error what DuckDB says is wrong.
import base64
import datetime
import decimal
import json
import math
import os
import re
import shutil
import socket
import string
import threading

try:
    import duckdb
    import pyarrow as pa
except ImportError as e:
    print(e, file=sys.stderr)
    sys.exit(77)
try:  # what DuckDB reads a pyarrow Dataset with: the only way in that says which columns and rows are needed
    from duckdb._sources import ArrowScanSource
    from duckdb._sources.nodes import Binary, Col, In, Lit, Postfix, Unary
except ImportError:
    print(f"DuckDB {duckdb.__version__} cannot be told which columns and rows are read", file=sys.stderr)
    sys.exit(77)

task = json.loads(sys.stdin.readline())
opened = set()  # names that dsi was asked for
listed = {}  # the tables of the store, once they were asked for


def end_with_dsi():
    """When dsi has been killed, ends the process and removes what dsi would: standard input is open until then."""
    os.read(0, 1)
    for directory in task["spill"], os.path.dirname(task["socket"]):
        shutil.rmtree(directory, ignore_errors=True)
    os._exit(1)


threading.Thread(target=end_with_dsi, daemon=True).start()


def ask(**request):
    """Asks dsi, and returns its first line and what follows it."""
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(task["socket"])
        s.sendall(json.dumps(request).encode() + b"\n")
        answer = s.makefile("rb", 1 << 16)
    return json.loads(answer.readline() or '{"error": "dsi does not answer"}'), answer


class Table(ArrowScanSource):
    """A table of the store. Only the columns and rows that a scan needs are read.

    Its first column is none of the store's: DuckDB reads it where a query needs no column, as count(*) does.
    """

    schema_is_stable = True

    def __init__(self, name, rows, schema):
        super().__init__(None)
        self.name, self.count = name, rows
        self.rows_only = "rows"
        while self.rows_only in {n.casefold() for n in schema.names}:
            self.rows_only += "_"
        self.schema = schema.insert(0, pa.field(self.rows_only, pa.bool_()))
        # DuckDB's DATE of a date64 has whole days; dsi compares what is stored, which may have a part of a day.
        self.unlike = {f.name for f in schema if f.type == pa.date64()}

    def rows(self):
        return self.count

    def __arrow_c_schema__(self):
        return self.schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema=None):
        return self.stream(None, [])[0]

    def accepts(self, predicate):
        try:
            text = self.filter_of(predicate)
        except RecursionError:
            return False
        return text is not None and len(text) < 4096 and "error" not in ask(table=self.name, check=text)[0]

    def stream(self, columns, filters):
        columns = list(range(len(self.schema)) if columns is None else columns)
        schema = pa.schema([self.schema.field(i) for i in columns])
        where = " AND ".join(self.filter_of(f) for f in filters)
        batches = self.batches(schema, [c - 1 for c in columns if c > 0], where)
        return pa.RecordBatchReader.from_batches(schema, batches).__arrow_c_stream__(), True

    def batches(self, schema, columns, where):
        answer, data = ask(table=self.name, columns=columns, where=where)
        with data:
            if "error" in answer:
                raise RuntimeError(answer["error"])
            if not columns:
                for at in range(0, answer["rows"], 65536):
                    yield self.batch(schema, iter(()), min(65536, answer["rows"] - at))
                return
            with pa.ipc.open_stream(data) as stream:
                for batch in stream:
                    yield self.batch(schema, iter(batch.columns), len(batch))
            if not data.readline():  # it comes when all was sent
                raise RuntimeError("dsi has ended the stream early")

    def filter_of(self, node):
        """The filter of dsi that is true for the same rows; None: there is none."""
        match node:
            case Binary(op="AND" | "OR" as op):
                terms = []  # of "a OR b OR c", which DuckDB nests as "((a) OR b) OR c"
                while isinstance(node, Binary) and node.op == op:
                    terms.append(self.filter_of(node.right))
                    node = node.left
                terms.append(self.filter_of(node))
                return None if None in terms else f"({f' {op} '.join(reversed(terms))})"
            case Unary(op="NOT", operand=operand):
                text = self.filter_of(operand)
                return text and f"(NOT {text})"
            case Postfix(operand=Col(parts=(name,))) | Binary(left=Col(parts=(name,))) | In(
                    operand=Col(parts=(name,))) if name in self.unlike:
                return None
            case Postfix(op=op, operand=Col(parts=(name,))):
                return f"({quoted(name)} {op})"
            case Binary(op=op, left=Col(parts=(name,)), right=Lit() as constant):
                text = literal(constant)
                if text and constant.type in ("FLOAT", "DOUBLE") and op in (">", ">="):
                    # NaN is above all numbers for DuckDB; for dsi it is neither above nor below.
                    return f"(NOT {quoted(name)} {'<=' if op == '>' else '<'} {text})"
                return text and f"({quoted(name)} {op} {text})"
            case In(operand=Col(parts=(name,)), values=values) if values:
                texts = [literal(v) for v in values]
                return None if None in texts else f"({quoted(name)} IN ({', '.join(texts)}))"
        return None

    def batch(self, schema, arrays, rows):
        empty = pa.nulls(rows, pa.bool_())
        return pa.record_batch([empty if name == self.rows_only else next(arrays) for name in schema.names], schema)


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


def literal(constant):
    """The constant in a filter; None: it has no exact one."""
    value, kind = constant.value, constant.type
    # An infinite time comes as the last or first one that Python has.
    if value is None or value in (datetime.date.max, datetime.date.min, datetime.datetime.max, datetime.datetime.min):
        return None
    if kind == "BOOLEAN":
        return "TRUE" if value else "FALSE"
    if kind.endswith(("TINYINT", "SMALLINT", "INTEGER", "BIGINT")):
        return str(value)
    if kind in ("FLOAT", "DOUBLE") and math.isfinite(value):
        return repr(value)
    if kind == "VARCHAR" and "\0" not in value:
        return "'" + value.replace("'", "''") + "'"
    if kind == "DATE" or kind in ("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS"):
        return f"'{value}'"
    return None


LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)  # as DuckDB compares names


def check_case(what, names, instead):
    """Raises an error if DuckDB, which does not tell upper from lower case, might take one of the names for another."""
    first = {}
    for name in sorted(names):
        other = first.setdefault(name.translate(LOWER), name)
        if other != name:
            raise duckdb.InvalidInputException(f"{what} {other} and {name}: their names differ only in case, which "
                                               f"DuckDB does not see: {instead}")


def check_table(name):
    table = name.partition("@")[0].translate(LOWER)
    if "tables" not in listed:
        listed.update(ask(list=True)[0])
    alike = [t for t in listed.get("tables", []) if t.translate(LOWER) == table]
    check_case("tables", alike, "dsi export writes one of them")


def open_table(con, name):
    """Puts a table where DuckDB finds it; False: there is none of that name, or it was there."""
    if name in opened:
        return False
    check_table(name)
    answer, data = ask(table=name)
    if "error" in answer:
        return False
    schema = pa.ipc.open_stream(data).schema
    check_case(f"table {name}: features", schema.names, "dsi features rename gives one another name")
    opened.add(name)
    table = Table(name, answer.get("rows"), schema)
    con.from_arrow(table).project(f"* exclude ({quoted(table.rows_only)})").create_view(name)
    return True


def bind(con, statement):
    """The result of a statement; None: it has none. Tables are opened that DuckDB misses."""
    if re.search(r"\b(show|information_schema|duckdb_(tables|columns|views))\b", statement.query, re.IGNORECASE):
        answer = ask(list=True)[0]
        if "error" in answer:
            raise RuntimeError(answer["error"])
        for name in answer.get("tables", []):
            try:
                open_table(con, name)
            except duckdb.InvalidInputException:
                pass  # the query may be of other tables; if it names this one, it is opened again
    while True:
        try:
            return con.sql(statement)
        except duckdb.CatalogException as e:
            missing = re.match(r"Catalog Error: Table with name (.+?) does not exist!", str(e), re.DOTALL)
            if not missing or not open_table(con, missing[1]):
                raise


def plain(value):
    """A value as JSON has it: in the way of dsi head --json."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, decimal.Decimal):
        return int(value) if value == value.to_integral_value() and value.as_tuple().exponent >= 0 else str(value)
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return value if value is None or isinstance(value, (str, int, float)) else str(value)


# Types, and lists of them, whose values DuckDB writes as text. Python has no year 0 or 10000 and no infinite time, and
# takes other values for others.
TEXT = re.compile(r"(DATE|TIME.*|INTERVAL|BIT|UHUGEINT)(\[\d*\])*")


def write_rows(result):
    """A line with the names and types of the columns, then a line per row."""

    def line(value):
        sys.stdout.write(json.dumps(value, ensure_ascii=False) + "\n")

    if result is None:
        return line({"columns": [], "types": []})
    types = [str(t) for t in result.types]
    line({"columns": result.columns, "types": types})
    as_text = [re.sub(r"^[^\[]*", "VARCHAR", t) if TEXT.fullmatch(t) else "" for t in types]
    if any(as_text):
        result = result.project(", ".join(f"#{i + 1}::{t}" if t else f"#{i + 1}" for i, t in enumerate(as_text)))
    left = task["rows"]
    for batch in result.to_arrow_reader(4096):
        for row in zip(*(column.to_pylist() for column in batch.columns)):
            line([plain(v) for v in row])
            left -= 1
            if left == 0:
                return


def write_arrow(result, new):
    stream = result.to_arrow_reader(65536)
    with new(sys.stdout.buffer, stream.schema) as out:
        for batch in stream:
            out.write_batch(batch)


def run():
    con = duckdb.connect()
    con.execute("set python_enable_replacements = false")
    con.execute("set enable_progress_bar = false")  # it would be printed among the rows of a query of 2 seconds
    con.execute("set temp_directory = ?", [task["spill"]])
    result = None
    for statement in con.extract_statements(task["query"]):
        result = bind(con, statement)
    if result is None and task["format"] != "rows":
        raise duckdb.InvalidInputException("the last statement gives no rows to write")
    match task["format"]:
        case "rows":
            write_rows(result)
        case "arrow":
            write_arrow(result, pa.ipc.new_file)
        case "arrows":
            write_arrow(result, pa.ipc.new_stream)
        case "parquet":
            result.write_parquet("/dev/stdout", compression="zstd")
        case "csv":
            result.write_csv("/dev/stdout")
        case "jsonl":
            result.create_view("result")
            con.execute("copy result to '/dev/stdout' (format json)")
    sys.stdout.flush()


try:
    run()
except duckdb.Error as e:
    print(e, file=sys.stderr)
    sys.exit(65)
