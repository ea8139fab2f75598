package corpus

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// sameRows is Python that reads an export with and without dictionaries and views, and fails unless their rows and
// nulls are the same. Views are read value by value: pyarrow 26 casts list views to lists wrongly where later ones
// start earlier.
const sameRows = `
import sys, pyarrow as pa

def read(path):
    with pa.memory_map(path) as f:
        return (pa.ipc.open_stream(f) if path.endswith(".arrows") else pa.ipc.open_file(f)).read_all()

def rows(column):
    out = []
    for c in column.chunks:
        out += (c.dictionary.take(c.indices) if pa.types.is_dictionary(c.type) else c).to_pylist()
    return out

want = read(sys.argv[1])
for path, shared in zip(sys.argv[2::2], sys.argv[3::2]):
    got = read(path)
    got.validate(full=True)
    kept = 0
    for name in want.column_names:
        t = want[name].type
        if pa.types.is_list(t):
            u = got[name].type
            assert str(u).startswith(shared), (path, name, str(u))
            kept += 1
        assert got[name].null_count == want[name].null_count, (path, name)
        assert repr(rows(got[name])) == repr(rows(want[name])), (path, name)
    assert kept > 0
    print(path, got.num_rows, kept)
`

// What pyarrow reads of an export with dictionaries, or with views, are the rows of the plain export.
func TestSharedExports(t *testing.T) {
	if testing.Short() {
		t.Skip("short")
	}
	t.Parallel()
	py, dir := python(t), t.TempDir()
	run := func(name string, args ...string) string {
		t.Helper()
		cmd := exec.Command(name, args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %s: %v\n%s", filepath.Base(name), strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	run(os.Args[0], "generate", "dump", "--rows", "5000")
	run(os.Args[0], "ingest", "store", "ads", "dump", "--session-key", "session_id")
	for file, dedup := range map[string]string{
		"plain.arrows": "kjt", "ikjt.arrows": "ikjt", "partial.arrows": "partial", "partial.arrow": "partial",
	} {
		run(os.Args[0], "export", "store", "ads", "--to", file, "--dedup="+dedup, "--features",
			"click,item_list_00000,user_history_00001,user_list_00002,user_scored_*")
	}
	t.Log(run(py, "-c", sameRows, "plain.arrows", "ikjt.arrows", "dictionary", "partial.arrows", "list_view",
		"partial.arrow", "list_view"))
}
