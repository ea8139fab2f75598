package simulate

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A world is written down in one line, so that one that a seed has made can be cut down and run again:
//
//	append t; overwrite t | append t; gc | -48h far expire t 1
//
// What stands before the first bar is done before the machines begin, alone and undisturbed. Each part after it is a
// machine, A, B and so on: what its clock is off by, whether requests take long for it (far), whether all its commits
// make runs and objects of row bitmaps (runs), and its actions.

// An actionMaker makes an action of its arguments.
type actionMaker struct {
	usage string
	args  int // at least
	most  int
	make  func(args []string) (func(*machine), error)
}

// plainAction is one that cannot be written wrong.
func plainAction(usage string, args, most int, f func(args []string) func(*machine)) actionMaker {
	return actionMaker{usage, args, most, func(args []string) (func(*machine), error) { return f(args), nil }}
}

func arg(args []string, i int) string {
	if i < len(args) {
		return args[i]
	}
	return ""
}

// actionMakers are the actions that worlds are written with, by their first word.
var actionMakers = map[string]actionMaker{
	"append": plainAction("append TABLE [PARTITION]", 1, 2,
		func(a []string) func(*machine) { return appendRows(a[0], arg(a, 1), 2) }),
	"overwrite": plainAction("overwrite TABLE [PARTITION]", 1, 2,
		func(a []string) func(*machine) { return overwritePartition(a[0], arg(a, 1), 1) }),
	"delete": plainAction("delete TABLE", 1, 1, func(a []string) func(*machine) { return deleteRow(a[0]) }),
	"rewrite": plainAction("rewrite TABLE [PARTITION]", 1, 2,
		func(a []string) func(*machine) { return rewriteSegments(a[0], arg(a, 1)) }),
	"compact": plainAction("compact TABLE", 1, 1, func(a []string) func(*machine) { return compactTable(a[0]) }),
	"ingest": plainAction("ingest TABLE [PARTITION]", 1, 2,
		func(a []string) func(*machine) { return ingestFile(ingestion{table: a[0], part: arg(a, 1)}) }),
	"replace": plainAction("replace TABLE [PARTITION]", 1, 2, func(a []string) func(*machine) {
		return ingestFile(ingestion{table: a[0], part: arg(a, 1), overwrite: true})
	}),
	"dump": plainAction("dump TABLE", 1, 1,
		func(a []string) func(*machine) { return ingestFile(ingestion{table: a[0], shared: true}) }),
	"remove": plainAction("remove TABLE", 1, 1, func(a []string) func(*machine) { return removeTable(a[0]) }),
	"share": plainAction("share TABLE OTHER", 2, 2,
		func(a []string) func(*machine) { return shareSegment(a[0], a[1]) }),
	"damage": plainAction("damage TABLE", 1, 1, func(a []string) func(*machine) { return damageTable(a[0]) }),
	"repair": plainAction("repair TABLE", 1, 1, func(a []string) func(*machine) { return repairTable(a[0]) }),
	"purge":  plainAction("purge TABLE", 1, 1, func(a []string) func(*machine) { return purge(a[0]) }),
	"branch": plainAction("branch TABLE NAME", 2, 2,
		func(a []string) func(*machine) { return createBranch(a[0], a[1]) }),
	"unbranch": plainAction("unbranch TABLE NAME", 2, 2,
		func(a []string) func(*machine) { return dropBranch(a[0], a[1]) }),
	"layer": plainAction("layer TABLE OVERLAY", 2, 2,
		func(a []string) func(*machine) { return setLayer(a[0], a[1]) }),
	"merge": plainAction("merge TABLE OVERLAY", 2, 2,
		func(a []string) func(*machine) { return mergeOverlay(a[0], a[1]) }),
	"drop": plainAction("drop TABLE OVERLAY", 2, 2,
		func(a []string) func(*machine) { return dropOverlay(a[0], a[1]) }),
	"list":     plainAction("list TABLE LIST", 2, 2, func(a []string) func(*machine) { return listRows(a[0], a[1]) }),
	"endlease": plainAction("endlease TABLE", 1, 1, func(a []string) func(*machine) { return endLease(a[0]) }),
	"readbranch": plainAction("readbranch TABLE NAME", 2, 2,
		func(a []string) func(*machine) { return readBranch(a[0], a[1]) }),
	"reopen": plainAction("reopen", 0, 0, func([]string) func(*machine) { return reopen }),
	"gc": {"gc [GRACE]", 0, 1, func(a []string) (func(*machine), error) {
		if len(a) == 0 {
			return collect(grace), nil
		}
		d, err := time.ParseDuration(a[0])
		return collect(d), err
	}},
	"expire": {"expire TABLE KEEP", 2, 2, func(a []string) (func(*machine), error) {
		n, err := strconv.ParseUint(a[1], 10, 64)
		return expireAll(a[0], n), err
	}},
	"read": {"read TABLE [LEASE [RENEWALS]]", 1, 3, func(a []string) (func(*machine), error) {
		o := reading{table: a[0]}
		var err, err2 error
		if len(a) > 1 {
			o.lease, err = time.ParseDuration(a[1])
		}
		if len(a) > 2 {
			o.renew, err2 = strconv.Atoi(a[2])
		}
		return readTable(o), cmp.Or(err, err2)
	}},
	"await": {"await MACHINE", 1, 1, func(a []string) (func(*machine), error) {
		if len(a[0]) != 1 || a[0][0] < 'A' || a[0][0] > 'Z' {
			return nil, fmt.Errorf("machine %q: want A to Z", a[0])
		}
		return awaitMachine(int(a[0][0] - 'A')), nil
	}},
	"erase": {"erase TABLE [SNAPSHOT]", 1, 2, func(a []string) (func(*machine), error) {
		return eraseWith(a,
			false)
	}},
	"eraseall": {"eraseall TABLE [SNAPSHOT]", 1, 2, func(a []string) (func(*machine), error) {
		return eraseWith(a,
			true)
	}},
	"sleep": {"sleep TIME", 1, 1, func(a []string) (func(*machine), error) {
		d, err := time.ParseDuration(a[0])
		return func(m *machine) { _ = m.sleep(d) }, err
	}},
}

// eraseWith makes an erasure, of a row of the newest snapshot or of one that the setup has made.
func eraseWith(args []string, dropBranches bool) (func(*machine), error) {
	n := uint64(0)
	if len(args) > 1 {
		var err error
		if n, err = strconv.ParseUint(args[1], 10, 64); err != nil {
			return nil, err
		}
	}
	return eraseRow(args[0], n, dropBranches), nil
}

// parseWorld reads what is written down of a world.
func parseWorld(text string) (setup script, machines []script, err error) {
	parts := strings.Split(text, "|")
	if len(parts) < 2 {
		return setup, nil, fmt.Errorf("world %q: want SETUP | MACHINE, and more machines", text)
	}
	for i, p := range parts {
		s, err := parseScript(p)
		if err != nil {
			return setup, nil, fmt.Errorf("world %q: %w", text, err)
		}
		if i == 0 {
			setup = s
		} else {
			machines = append(machines, s)
		}
	}
	return setup, machines, nil
}

func parseScript(text string) (script, error) {
	var s script
	words := strings.Fields(text)
	for len(words) > 0 {
		if words[0] == "far" {
			s.far = true
		} else if words[0] == "runs" {
			s.runs = true
		} else if strings.HasPrefix(words[0], "-") || strings.HasPrefix(words[0], "+") {
			var err error
			if s.clock, err = time.ParseDuration(words[0]); err != nil {
				return s, err
			}
		} else {
			break
		}
		words = words[1:]
	}
	var actions []func(*machine)
	for one := range strings.SplitSeq(strings.Join(words, " "), ";") {
		words := strings.Fields(one)
		if len(words) == 0 {
			continue
		}
		maker, ok := actionMakers[words[0]]
		if !ok {
			return s, fmt.Errorf("unknown action %q: want one of %s", words[0], strings.Join(actionNames(), ", "))
		}
		args := words[1:]
		if len(args) < maker.args || len(args) > maker.most {
			return s, fmt.Errorf("action %q: want %s", one, maker.usage)
		}
		a, err := maker.make(args)
		if err != nil {
			return s, fmt.Errorf("action %q: want %s: %w", one, maker.usage, err)
		}
		actions = append(actions, a)
	}
	s.does = func(m *machine) {
		for _, a := range actions {
			a(m)
		}
	}
	return s, nil
}

func actionNames() []string {
	var out []string
	for name := range actionMakers {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// splitWorld takes a written world apart: each machine's actions, so that some can be left out.
func splitWorld(text string) (parts [][]string) {
	for p := range strings.SplitSeq(text, "|") {
		var actions []string
		for a := range strings.SplitSeq(p, ";") {
			if a = strings.TrimSpace(a); a != "" {
				actions = append(actions, a)
			}
		}
		parts = append(parts, actions)
	}
	return parts
}

func joinWorld(parts [][]string) string {
	var out []string
	for _, actions := range parts {
		out = append(out, strings.Join(actions, "; "))
	}
	return strings.Join(out, " | ")
}
