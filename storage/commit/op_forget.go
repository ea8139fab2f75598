package commit

import "context"

// Forget merges the runs of both trees, so that no object that the snapshot names has what earlier snapshots said and
// it does not: names that were dropped, definitions of lists, descriptors of removed segments. Erasures need it.
type Forget bool

func (Forget) phase() phase                       { return phaseBranches }
func (Forget) validate(*Change) error             { return nil }
func (Forget) apply(context.Context, *edit) error { return nil }
