//go:build !linux

package doctor

// filesystem can't tell.
func filesystem(string) (string, error) { return "", nil }
