package s3_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dsistore/dsistore/internal/objectserver"
	"github.com/dsistore/dsistore/storage/object"
)

// Many objects are deleted by few requests, also where some are not there, and a request that is done in part is sent
// again for the rest.
func TestDeleteAll(t *testing.T) {
	server := objectserver.StartS3(t, bucket)
	proxy := objectserver.StartProxy(t, server.Endpoint)
	s := object.NewCounted(open(t, server, proxy))
	ctx := t.Context()
	var names []string
	for i := range 2050 {
		names = append(names, fmt.Sprintf("all/%04d", i))
	}
	must(t, object.Parallel(ctx, object.RequestsAtOnce, 1900, func(ctx context.Context, i int) error {
		return s.PutIfAbsent(ctx, names[i], nil)
	}))
	must(t, s.PutIfAbsent(ctx, "allowed", nil))
	must(t, object.DeleteAll(ctx, s, names))
	for info, err := range s.List(ctx, "all", "") {
		if must(t, err); info.Name != "allowed" {
			t.Fatalf("%s is there", info.Name)
		}
	}
	if got := s.Counts().Deletes; got != 3 {
		t.Errorf("%d requests", got)
	}
	if err := object.DeleteAll(ctx, s, []string{"a", "../b"}); err == nil {
		t.Error("a name that no object has")
	}
}

// What a bucket keeps of objects that were deleted and truncated goes, of those that match; the objects stay, and none
// comes back.
func TestRemoveVersions(t *testing.T) {
	server := objectserver.StartS3(t, bucket)
	s := open(t, server, nil)
	kept, ok := object.As[object.Versioned](s)
	if !ok {
		t.Fatal("it says nothing about versions")
	}
	ctx := t.Context()
	if keeps, err := kept.KeepsVersions(ctx); err != nil || keeps {
		t.Fatal(keeps, err)
	}
	server.KeepVersions(t, bucket)
	if keeps, err := kept.KeepsVersions(ctx); err != nil || !keeps {
		t.Fatal(keeps, err)
	}
	put := func(name, data string) { must(t, s.PutIfAbsent(ctx, name, []byte(data))) }
	for _, dir := range []string{"d/", "other/"} {
		put(dir+"deleted", "secret")
		must(t, s.Delete(ctx, dir+"deleted"))
		put(dir+"again", "secret")
		must(t, s.Delete(ctx, dir+"again"))
		// versitygw refuses a creation where the newest version is a mark of deletion; this has no condition.
		must(t, s.Truncate(ctx, object.Info{Name: dir + "again"}))
		put(dir+"truncated", "secret")
		info, err := s.Stat(ctx, dir+"truncated")
		must(t, err)
		must(t, s.Truncate(ctx, info))
		put(dir+"whole", "whole")
	}
	// More of one key than a page lists, so that a mark of deletion and what it hides lie on different ones.
	for range 700 {
		must(t, s.Truncate(ctx, object.Info{Name: "d/often"}))
		must(t, s.Delete(ctx, "d/often"))
	}
	removed, err := kept.RemoveVersions(ctx, "d/", func(name string) bool { return name != "d/whole" })
	must(t, err)
	if len(removed) != 3+700 {
		t.Errorf("%d versions removed", len(removed))
	}
	var left []string
	for _, v := range server.Versions(t, bucket) {
		name := v.Key[strings.Index(v.Key, "/")+1:]
		if dir, rest, _ := strings.Cut(name, "/"); dir == "d" {
			left = append(left, rest)
			if v.Mark || !v.Latest || string(server.Bytes(t, bucket, v)) == "secret" {
				t.Errorf("%+v is left", v)
			}
		}
	}
	slices.Sort(left)
	if want := []string{"again", "truncated", "whole"}; !slices.Equal(left, want) {
		t.Errorf("left: %v", left)
	}
	hidden := 0
	for _, v := range server.Versions(t, bucket) {
		if strings.Contains(v.Key, "/other/") && !v.Mark && string(server.Bytes(t, bucket, v)) == "secret" {
			hidden++
		}
	}
	if hidden != 3 {
		t.Errorf("%d versions of other names are left, of 3", hidden)
	}
	if got := content(t, s, "d/whole"); string(got) != "whole" {
		t.Errorf("d/whole holds %q", got)
	}
}
