package shared

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// Redis's refusals are shown, whatever a limiter does when its store fails: also those of a command in the script.
func TestRefusals(t *testing.T) {
	for text, refused := range map[string]bool{
		"NOPERM this user has no permissions to run the 'evalsha' command":                                      true,
		"ERR The user executing the script can't run this command or subcommand script: 7b on @user_script:12.": true,
		"WRONGTYPE the value is not the state of a limiter":                                                     true,
		"OOM command not allowed when used memory > 'maxmemory'.":                                               false,
		"LOADING Redis is loading the dataset in memory":                                                        false,
	} {
		var config *ConfigError
		require.Equal(t, refused, errors.As(failure("pace:{a}", errors.New(text)), &config), text)
	}
	require.NotContains(t, errLate.Error(), "Redis", "any store may be late")
}
