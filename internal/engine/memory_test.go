package engine

import (
	"testing"
	"testing/fstest"
)

func TestGroupLimit(t *testing.T) {
	for _, tt := range []struct {
		name  string
		files map[string]string
		want  int64
	}{
		{"another system", nil, 0},
		{"version 2", map[string]string{"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "2000\n"}, 2000},
		{"version 2, the group above", map[string]string{
			"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "max\n", "sys/fs/cgroup/a/memory.max": "3000\n"}, 3000},
		{"version 2, none", map[string]string{"proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/memory.max": "max\n"}, 0},
		{"version 2, in a container", map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "4000\n"}, 4000},
		{"version 1", map[string]string{
			"proc/self/cgroup": "5:cpu,cpuacct:/x\n4:memory:/a\n0::/\n", "sys/fs/cgroup/memory/a/memory.limit_in_bytes": "5000\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, 5000},
		{"version 1, in a container", map[string]string{
			"proc/self/cgroup": "4:memory:/docker/0123\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "6000\n"}, 6000},
		{"version 1, none", map[string]string{
			"proc/self/cgroup": "4:memory:/\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, 0},
		{"damaged", map[string]string{"proc/self/cgroup": "0\n0::/a\n", "sys/fs/cgroup/a/memory.max": "much\n"}, 0},
	} {
		root := fstest.MapFS{}
		for name, text := range tt.files {
			root[name] = &fstest.MapFile{Data: []byte(text)}
		}
		if got := groupLimit(root); got != tt.want {
			t.Errorf("%s: %d bytes, want %d", tt.name, got, tt.want)
		}
	}
}

func TestMaxResident(t *testing.T) {
	for limit, want := range map[int64]int{0: mostResident, 1 << 30: 512_000, 64 << 30: mostResident, 1000: 1} {
		if got := MaxResident(limit); got != want {
			t.Errorf("%d bytes: %d URLs, want %d", limit, got, want)
		}
	}
}

func TestSoftLimit(t *testing.T) {
	for used, want := range map[int64]int64{0: 400 << 20, 200 << 20: 400 << 20, 1 << 30: 3 << 29} {
		if got := softLimit(used); got != want {
			t.Errorf("%d bytes in use: limit %d, want %d", used, got, want)
		}
	}
	if LimitMemory(fstest.MapFS{}) != LimitMemory(fstest.MapFS{"proc/self/cgroup": {Data: []byte("0::/\n")}, "sys/fs/cgroup/memory.max": {Data: []byte("1000\n")}}) {
		t.Error("the second call set another limit")
	}
}
