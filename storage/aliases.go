package storage

import "github.com/dsistore/dsistore/storage/catalog"

// What package catalog defines is part of this package's API.
type (
	FeatureID         = catalog.FeatureID
	Feature           = catalog.Feature
	FeatureStatus     = catalog.FeatureStatus
	Role              = catalog.Role
	Partition         = catalog.Partition
	PartitionValue    = catalog.PartitionValue
	SegmentDescriptor = catalog.SegmentDescriptor
	Source            = catalog.Source
	Overlay           = catalog.Overlay
	MissingPolicy     = catalog.MissingPolicy
	SampleList        = catalog.SampleList
	Branch            = catalog.Branch
	Pin               = catalog.Pin
)

const (
	RoleFeature    = catalog.RoleFeature
	RoleLabel      = catalog.RoleLabel
	RoleSessionKey = catalog.RoleSessionKey
	RoleRequestKey = catalog.RoleRequestKey
	RoleUserKey    = catalog.RoleUserKey
	RoleTimeKey    = catalog.RoleTimeKey

	FeatureActive     = catalog.FeatureActive
	FeatureDeprecated = catalog.FeatureDeprecated
	FeatureDropped    = catalog.FeatureDropped

	FallThrough = catalog.FallThrough
	Null        = catalog.Null
	Refuse      = catalog.Refuse
)

// NewFeatureID returns the id of the generation-th feature (0: the first) that was added as name.
func NewFeatureID(name string, generation uint32) FeatureID {
	return catalog.NewFeatureID(name, generation)
}

// ParsePartition parses what Partition.String returns, and what Hive names directories: any byte may be escaped.
func ParsePartition(s string) (Partition, error) { return catalog.ParsePartition(s) }
