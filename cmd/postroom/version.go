package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

type versionCommand struct{}

// Run prints the version as the build recorded it.
func (*versionCommand) Run(term *terminal) error {
	version := "(devel)"
	if info, ok := debug.ReadBuildInfo(); ok {
		if info.Main.Version != "" {
			version = info.Main.Version
		}
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				version += " " + s.Value
			}
		}
	}
	return term.print(fmt.Sprintf("postroom %s %s %s/%s\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH))
}
