package doctor

import (
	"fmt"
	"syscall"
)

// The numbers are those of statfs(2).
var filesystems = map[uint32]string{
	0x6969: "nfs", 0x517B: "smb", 0xFE534D42: "smb", 0xFF534D42: "cifs", 0x5346414F: "afs", 0x00C36400: "ceph",
	0x0BD00BD0: "lustre", 0x73757245: "coda", 0x01021997: "9p", 0x65735546: "fuse", 0x786F4256: "vboxsf",
	0x01021994: "tmpfs", 0x858458F6: "ramfs",
	0xEF53: "ext4", 0x58465342: "xfs", 0x9123683E: "btrfs", 0x2FC12FC1: "zfs", 0x794C7630: "overlay", 0xF2F52010: "f2fs",
}

// filesystem gives the kind of file system that a directory is on.
func filesystem(dir string) (string, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return "", fmt.Errorf("file system of %s: %w", dir, err)
	}
	return filesystems[uint32(s.Type)], nil //nolint:gosec // 32 bits by definition
}
