package app

import (
	"os"
	"os/user"

	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/usage"
)

// UsageFlags say how it is recorded what a command reads.
type UsageFlags struct {
	Job     string `placeholder:"NAME" help:"Name of the job in the usage records. Default: DSISTORE_JOB, else the command."`
	NoUsage bool   `help:"Write no usage record. DSISTORE_USAGE=off does the same."`
}

// Usage returns what the flags say of usage records. The default job is that of the command.
func (f UsageFlags) Usage(command string) reader.UsageOptions {
	job := f.Job
	if job == "" && os.Getenv(usage.JobVariable) == "" {
		job = "dsi " + command
	}
	return reader.UsageOptions{Off: f.NoUsage, Job: job, Program: "dsi"}
}

// WhoAmI returns user@host, as far as it is known.
func WhoAmI() string {
	name := "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if host, err := os.Hostname(); err == nil {
		name += "@" + host
	}
	return name[:min(len(name), 256)]
}
