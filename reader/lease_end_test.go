package reader

import (
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"
)

const endLeasesEnv = "DSISTORE_TEST_END_LEASES"

// TestEndLeases: a process that ends leaves no lease, of readers that are open, nor of those that were closed with
// Reuse, and takes no more. It is a process of its own, as it cannot take leases afterwards.
func TestEndLeases(t *testing.T) {
	if os.Getenv(endLeasesEnv) == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestEndLeases$", "-test.count=1")
		cmd.Env = append(os.Environ(), endLeasesEnv+"=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	blobs, snap, l := leasedLayout(t)
	stop := blobs.drain()
	defer stop()
	opts := Options{Lease: LeaseOptions{After: 1, For: time.Hour}}
	opened, err := l.Open(opts)
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	for !opened.hold.Renewers[0].HasLease() {
		runtime.Gosched()
	}
	// Another snapshot, whose only reader is closed and leaves its lease for the next.
	other, otherSnap, otherLayout := leasedLayout(t)
	stopOther := other.drain()
	defer stopOther()
	opts.Reuse = true
	kept, err := otherLayout.Open(opts)
	if err != nil {
		t.Fatal(err)
	}
	for !kept.hold.Renewers[0].HasLease() {
		runtime.Gosched()
	}
	if err := kept.Close(); err != nil {
		t.Fatal(err)
	}
	if all := leased(t, otherSnap.Table()); len(all) != 1 {
		t.Fatalf("%+v: want the lease to be kept for the next reader", all)
	}

	EndLeases()
	if all := append(leased(t, snap.Table()), leased(t, otherSnap.Table())...); len(all) > 0 {
		t.Errorf("left are %+v", all)
	}
	late, lateSnap, lateLayout := leasedLayout(t)
	stopLate := late.drain()
	defer stopLate()
	reader, err := lateLayout.Open(opts)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	time.Sleep(20 * time.Millisecond)
	if all := leased(t, lateSnap.Table()); len(all) > 0 {
		t.Errorf("taken after all have ended: %+v", all)
	}
}
