package lambdalocal

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// environ returns the environment of the process. It inherits nothing: a function that works here because of
// the user's environment would not work on Lambda. As on Lambda, AWS_EXECUTION_ENV is not set for OS-only
// runtimes. Unlike on Lambda, HOME is set, so that no profile of the user is read, and TMPDIR replaces the
// private /tmp of each instance.
func (i *instance) environ(api string) []string {
	c := i.f.config
	env := map[string]string{
		"_HANDLER":                        "bootstrap",
		"AWS_ACCESS_KEY_ID":               "test",
		"AWS_SECRET_ACCESS_KEY":           "test",
		"AWS_SESSION_TOKEN":               "test",
		"AWS_REGION":                      c.Region,
		"AWS_DEFAULT_REGION":              c.Region,
		"AWS_LAMBDA_FUNCTION_NAME":        c.Name,
		"AWS_LAMBDA_FUNCTION_VERSION":     "$LATEST",
		"AWS_LAMBDA_FUNCTION_MEMORY_SIZE": strconv.Itoa(c.MemoryMB),
		"AWS_LAMBDA_INITIALIZATION_TYPE":  "on-demand",
		"AWS_LAMBDA_LOG_GROUP_NAME":       "/aws/lambda/" + c.Name,
		"AWS_LAMBDA_LOG_STREAM_NAME":      fmt.Sprintf("%s/[$LATEST]%s", i.started.UTC().Format("2006/01/02"), i.id),
		"HOME":                            i.dir,
		"LANG":                            "en_US.UTF-8",
		"LAMBDA_RUNTIME_DIR":              "/var/runtime",
		"LAMBDA_TASK_ROOT":                i.f.task,
		"PATH":                            "/usr/local/bin:/usr/bin:/bin:/opt/bin",
		"TMPDIR":                          i.dir,
		"TZ":                              ":UTC",
	}
	maps.Copy(env, c.Env)
	env["AWS_LAMBDA_RUNTIME_API"] = api
	out := make([]string, 0, len(env))
	for _, k := range slices.Sorted(maps.Keys(env)) {
		out = append(out, k+"="+env[k])
	}
	return out
}
