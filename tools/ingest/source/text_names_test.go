package source

import (
	"strings"
	"testing"
)

// TestNamesThatAreValues: a URL, JSON and a long text among longer ones are no names.
func TestNamesThatAreValues(t *testing.T) {
	long := strings.Repeat("word ", 20)
	runText(t, []textCase{
		{"MIND", "news.tsv", "", "", "N55528\tlifestyle\tThe Brands\thttps://a/1.html\t[{\"Label\": \"P\"}]\t[]\n" +
			"N19639\thealth\t50 Worst\thttps://a/2.html\t[]\t[]\n", `line 1 looks like values, not names: it has ` +
			`"https://a/1.html"`},
		{"JSON", "f.tsv", "", "", "N1\ta\t[{\"Label\": \"P\"}]\nN2\tb\t[]\n", `it has "[{\"Label\": \"P\"}]"`},
		{"an empty list", "f.tsv", "", "", "N1\ta\t[]\nN2\tb\t[1]\n", `it has "[]"`},
		{"an object", "f.tsv", "", "", "N1\ta\t{\"k\": 1}\nN2\tb\t{}\n", `it has "{\"k\": 1}"`},
		{"a list of Python's", "f.tsv", "", "", "N1\ta\t['x']\nN2\tb\t['y']\n", `it has "['x']"`},
		{"long texts", "f.tsv", "", "", "N1\t" + long + "\nN2\t" + long + "too\n", `line 1 looks like values, not ` +
			`names: it has "word `},
		{"a long question", "f.tsv", "", "", "id\t" + long + "\nN2\tyes\n", "id=\"N2\" " + strings.TrimSpace(long) +
			"=\"yes\"\n"},
		{"long questions and answers", "f.tsv", "", "", "id\ttime\t" + long + "\nN1\t1\t" + long + "too\n",
			"id=\"N1\" time=1 " + strings.TrimSpace(long) + "=\"" + long + "too\"\n"},
		{"a question with a URL", "", "", "", "id,was https://a.b good\n1,yes\n",
			"id=1 was https://a.b good=\"yes\"\n"},
		{"JSON lines", "f.csv", "", "", "{\"user\": 1, \"item\": 2}\n{\"user\": 3, \"item\": 4}\n",
			`its first line is an object, not names: say --format jsonl`},
		{"an object of Python's", "f.txt", "", "", "{'user': 1,'item': 2}\n{'user': 3,'item': 4}\n", "is an object"},
		{"as a file of Parquet begins", "p.csv", "", "", "PARENT_ID,NAME\n1,x\n", "PARENT_ID=1 NAME=\"x\"\n"},
		{"as a file of ORC begins", "o.csv", "", "", "ORCID,NAME\n1,x\n", "ORCID=1 NAME=\"x\"\n"},
		{"units", "", "", "", "id,[kg],x[0],{a}\n1,2,3,4\n", "id=1 [kg]=2 x[0]=3 {a}=4\n"},
		{"the mapping file says that it is a name", "f.tsv", `{"text": {"header": true}}`, "", "a\thttps://b/c\nx\ty\n",
			"a=\"x\" https://b/c=\"y\"\n"},
	})
}
