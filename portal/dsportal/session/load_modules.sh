# Load modules and say what the environment is then: load_modules.sh INIT MODULE...
# What the module system says goes to the standard error; the environment, each variable ended by
# a zero byte, to the standard output.
source "$1" || exit
shift
module load "$@" >&2 || exit
exec /usr/bin/env --null
