package file

import (
	"bufio"
	"os"
	"strings"
	"syscall"
)

// network returns the name of the network file system that a folder is on, or "".
func network(dir string) string {
	var s syscall.Statfs_t
	if syscall.Statfs(dir, &s) != nil {
		return ""
	}
	switch uint32(s.Type) { // statfs(2)
	case 0x6969:
		return "nfs"
	case 0xff534d42, 0xfe534d42, 0x517b:
		return "smb"
	case 0x01021997:
		return "9p"
	case 0x00c36400:
		return "ceph"
	case 0x01161970:
		return "gfs2"
	case 0x65735546: // FUSE
		return remote(dir)
	}
	return ""
}

// remote searches the list of mounts.
func remote(dir string) (system string) {
	list, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return ""
	}
	defer list.Close()
	longest := 0
	for lines := bufio.NewScanner(list); lines.Scan(); {
		before, after, _ := strings.Cut(lines.Text(), " - ")
		fields := strings.Fields(before)
		if len(fields) < 5 || len(fields[4]) < longest {
			continue
		}
		if at := fields[4]; dir == at || strings.HasPrefix(dir, strings.TrimSuffix(at, "/")+"/") {
			kind, _, _ := strings.Cut(after, " ")
			if longest, system = len(at), ""; kind == "virtiofs" || kind == "fuse.glusterfs" || kind == "fuse.sshfs" {
				system = kind
			}
		}
	}
	return system
}
