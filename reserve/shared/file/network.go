//go:build !darwin

package file

import (
	"bufio"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

var networks = []string{
	"nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "gfs2", "virtiofs", "fuse.glusterfs", "fuse.sshfs",
}

// network returns the kind of the network file system that a folder is on, or "". Only Linux has the list of mounts.
func network(dir string) (kind string) {
	list, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return ""
	}
	defer list.Close()
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	longest := 0
	for lines := bufio.NewScanner(list); lines.Scan(); {
		before, after, _ := strings.Cut(lines.Text(), " - ")
		fields := strings.Fields(before)
		if len(fields) < 5 {
			continue
		}
		at := strings.TrimSuffix(strings.ReplaceAll(fields[4], `\040`, " "), "/") + "/"
		if len(at) >= longest && strings.HasPrefix(dir+"/", at) {
			longest = len(at)
			kind, _, _ = strings.Cut(after, " ")
		}
	}
	if slices.Contains(networks, kind) {
		return kind
	}
	return ""
}
