package source

import (
	"path/filepath"
	"strings"
	"testing"
)

// A textCase is a text, the mapping file and the DDL that it is read with (empty: none), and its rows, or a part of the
// error.
type textCase struct{ name, file, mapping, ddl, text, want string }

// read reads the text of a case.
func (c *textCase) read(t *testing.T, opts Options) (rows string, err error) {
	t.Helper()
	file := c.file
	if file == "" {
		file = "f.csv"
	}
	dir := writeFiles(t, map[string]string{"m.json": c.mapping, "t.sql": c.ddl, file: c.text})
	if c.mapping != "" {
		opts.MappingFile = filepath.Join(dir, "m.json")
	}
	if c.ddl != "" {
		opts.DDLFile = filepath.Join(dir, "t.sql")
	}
	chunks, err := readPath(t, filepath.Join(dir, file), opts)
	return dump(chunks), err
}

// runText reads the texts of cases.
func runText(t *testing.T, cases []textCase) {
	t.Helper()
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			got, err := tc.read(t, Options{})
			if err != nil && (tc.want == "" || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("got %v, want %s", err, tc.want)
			}
			if err == nil && got != tc.want {
				t.Errorf("got\n%swant\n%s", got, tc.want)
			}
		})
	}
}

// TestHeaderlessLogs: a log without names, or with "::" or blanks between its columns, is no text of one column.
func TestHeaderlessLogs(t *testing.T) {
	const named = `{"text": {"columns": [{"name": "u"}, {"name": "i"}, {"name": "r"}, {"name": "t"}]}}`
	const three = `{"text": {"columns": [{"name": "u"}, {"name": "i"}, {"name": "r"}]}}`
	const movielens = "1::1193::5::978300760\n1::661::3::978302109\n2::1357::5::978298709\n"
	const epinions = "22605 42 5\n22605 17 3\n1 2 3\n"
	const snap = "# Directed graph: web.txt\n# Nodes: 3 Edges: 3\n# FromNodeId\tToNodeId\n0\t1\n0\t2\n1\t2\n"
	const lightGCN = "0 0 1 2 3 4\n1 5 6 7\n2 8 9\n"
	const netflix = "1:\n1488844,3,2005-09-06\n822109,5,2005-05-13\n2:\n885013,4,2005-10-19\n"
	runText(t, []textCase{
		{"MovieLens", "ratings.dat.txt", "", "", movielens, `line 1 looks like values, not names: it has "1". A file ` +
			`without names gets them with {"text": {"columns": [{"name": "..."}, ...]}} in a mapping file ` +
			`(--mapping), one for each of its columns, of which it has 4`},
		{"MovieLens with names", "ratings.txt", named, "", movielens,
			"u=1 i=1193 r=5 t=978300760\nu=1 i=661 r=3 t=978302109\nu=2 i=1357 r=5 t=978298709\n"},
		{"MovieLens' movies", "movies.txt", three, "", "1::Toy Story (1995)::Animation|Children's|Comedy\n" +
			"2::Jumanji (1995)::Adventure|Children's|Fantasy\n3::Heat, a film (1995)::Action|Crime|Thriller\n",
			"u=1 i=\"Toy Story (1995)\" r=\"Animation|Children's|Comedy\"\n" +
				"u=2 i=\"Jumanji (1995)\" r=\"Adventure|Children's|Fantasy\"\n" +
				"u=3 i=\"Heat, a film (1995)\" r=\"Action|Crime|Thriller\"\n"},
		{"double colons and names", "", "", "", "user::item::rating\n1::2::3\n4::5::6\n",
			"user=1 item=2 rating=3\nuser=4 item=5 rating=6\n"},
		{"commas beside double colons", "", "", "", "ip,n\nfe80::1,1\nfe80::2,2\n",
			"ip=\"fe80::1\" n=1\nip=\"fe80::2\" n=2\n"},
		{"double colons below a title", "", "", "", "ratings\n1::2::3\n4::5::6\n",
			`line 1 is one column, and the lines below it have 3 between "::"`},
		{"blanks", "ratings_data.txt", "", "", epinions, `line 1 looks like values, not names: it has "22605"`},
		{"blanks, and names in the mapping file", "ratings_data.txt", three, "", epinions,
			"u=22605 i=42 r=5\nu=22605 i=17 r=3\nu=1 i=2 r=3\n"},
		{"a blank at the end of lines", "f.txt", three, "", "22605 42 5 \n1 2 3 \n",
			"u=22605 i=42 r=5\nu=1 i=2 r=3\n"},
		{"blanks and names", "spc.csv", "", "", "a b\n1 2\n3 4\n", "a=1 b=2\na=3 b=4\n"},
		{"blanks and names that the mapping file says", "spc.csv", `{"text": {"header": true}}`, "",
			"a b\n1 2\n3 4\n", "a=1 b=2\na=3 b=4\n"},
		{"blanks below a title", "f.txt", "", "", "ratings\n1 2 3\n4 5 6\n",
			`line 1 is one column, and the lines below it have 3 between blanks`},
		{"runs of blanks", "f.txt", "", "", "   1.0e+00   2.0e+00\n  10.0e+00   2.0e+00\n",
			`it has 2 columns of numbers between runs of blanks: ` +
				"`awk"},
		{"LightGCN", "train.txt", "", "", lightGCN, `line 1 looks like values, not names: "0 0 1 2 3 4". Its numbers ` +
			`are between blanks, and lines have more and fewer of them: {"text": {"items": " ", "columns": ` +
			`[{"name": "...", "type": "array<bigint>"}]}} in a mapping file makes a list of each line`},
		{"LightGCN with a type", "train.txt", `{"text": {"items": " ", "columns": [{"name": "l", "type": ` +
			`"array<bigint>"}]}}`, "", lightGCN, "l=[0,0,1,2,3,4]\nl=[1,5,6,7]\nl=[2,8,9]\n"},
		{"Netflix", "combined_data_1.txt", "", "", netflix, `line 1 looks like values, not names: "1:". Line 2 has 3 ` +
			`columns between commas`},
		{"SNAP", "snap.txt", "", "", snap, `line 1 begins with # as a comment does: pass over the lines before the ` +
			`names with {"text": {"skip_lines": 3}} in a mapping file; if no line has the names, say {"text": ` +
			`{"skip_lines": 3, "columns": [{"name": "..."}, ...]}}`},
		{"SNAP with names", "snap.txt", `{"text": {"skip_lines": 3, "columns": [{"name": "a"}, {"name": "b"}]}}`, "",
			snap, "a=0 b=1\na=0 b=2\na=1 b=2\n"},
		{"comments alone", "snap.txt", "", "", "# nothing\n# here\n", `line 1 begins with # as a comment does`},
		{"a name that begins with a digit", "f.txt", "", "", "1st of all\nx\n",
			`line 1 looks like values, not names: "1st of all"`},
		{"a name that begins with a digit, and the mapping file says so", "f.txt", `{"text": {"header": true}}`, "",
			"1st of all\nx\n", "1st of all=\"x\"\n"},
		// What is one column stays one.
		{"ids", "", "", "", "user_id\n1\n2\n", "user_id=1\nuser_id=2\n"},
		{"texts with blanks", "", "", "", "title\nHello world\nGood day\n",
			"title=\"Hello world\"\ntitle=\"Good day\"\n"},
		{"a name and texts with blanks", "", "", "", "movie title\nToy Story\nJumanji 2\nHeat Wave\n",
			"movie title=\"Toy Story\"\nmovie title=\"Jumanji 2\"\nmovie title=\"Heat Wave\"\n"},
		{"a name with a blank, and times", "", "", "", "event time\n1970-01-01 00:00:00\n1970-01-01 00:00:01\n",
			"event time=0\nevent time=1000000000\n"},
		{"times without a name", "", "", "", "1970-01-01 00:00:00\n1970-01-01 00:00:01\n", `it has "1970-01-01 ` +
			`00:00:00". A file without names gets them with {"text": {"columns": [{"name": "..."}, ...]}} in a ` +
			`mapping file (--mapping), one for each of its columns, of which it has 1`},
		{"a name, and times", "", "", "", "time\n1970-01-01 00:00:00\n1970-01-01 00:00:01\n",
			"time=0\ntime=1000000000\n"},
		{"a name with a blank, and numbers", "", "", "", "user id\n1\n2\n", "user id=1\nuser id=2\n"},
		{"a name with a blank alone", "", "", "", "user id\n", ""},
		{"a name with a blank, and units", "", "", "", "net weight\n5 kg\n6 kg\n",
			"net weight=\"5 kg\"\nnet weight=\"6 kg\"\n"},
		{"words and numbers without names", "", "", "", "u1 5\nu2 6\n",
			`line 1 looks like values, not names: it has "5"`},
		{"words and numbers", "", "", "", "user item stars\nu1 i1 5\nu2 i2 4\n",
			"user item stars=\"u1 i1 5\"\nuser item stars=\"u2 i2 4\"\n"},
		{"dates", "", "", "", "Date of birth\n12 March 1980\n1 May 1981\n",
			"Date of birth=\"12 March 1980\"\nDate of birth=\"1 May 1981\"\n"},
		{"times of twelve hours", "", "", "", "Order date time\n2020-01-01 10:00:00 AM\n",
			"Order date time=\"2020-01-01 10:00:00 AM\"\n"},
		{"a trailing blank", "", "", "", "first middle last\nAnna B Smith \nBo C Li\nDi E Fo\n",
			"first middle last=\"Anna B Smith \"\nfirst middle last=\"Bo C Li\"\nfirst middle last=\"Di E Fo\"\n"},
		{"a number in the name", "", "", "", "Top 100\nToy Story\nHeat Wave\n",
			"Top 100=\"Toy Story\"\nTop 100=\"Heat Wave\"\n"},
		{"two numbers below a name", "", "", "", "postcode\n114 55\n114 56\n",
			"postcode=\"114 55\"\npostcode=\"114 56\"\n"},
		{"keys", "", "", "", "key\nuser::123\nuser::124\n", "key=\"user::123\"\nkey=\"user::124\"\n"},
		{"vectors", "", `{"text": {"items": " "}, "columns": {"vector": {"type": "array<float>"}}}`, "",
			"vector\n0.5 0.25 1\n1 2 3\n", "vector=[0.5,0.25,1]\nvector=[1,2,3]\n"},
		{"bars beside double colons", "f.txt", `{"text": {"columns": [{"name": "f"}, {"name": "n"}]}}`, "",
			"std::sort|12\nstd::find|3\n", "f=\"std::sort\" n=12\nf=\"std::find\" n=3\n"},
		{"names of namespaces", "", "", "", "symbol\nstd::string\nvector\n",
			"symbol=\"std::string\"\nsymbol=\"vector\"\n"},
	})
}
