# Makes what operators read from the table of docs/configuration.md, which the daemon itself writes
# (drivewattd --dump-manual):
#
#   awk -v form=options     …  the options of drivewattd(8)
#   awk -v form=keys        …  the keys of drivewatt.conf(5)
#   awk -v form=config      …  /etc/drivewatt/drivewatt.conf, every key commented out
#   awk -v form=completion  …  words for bash: name, then what its value is

BEGIN { FS = " [|] " }

# roff: a dash is a minus sign, a dot or quote at a line's start no request.
function roff(text) {
	gsub(/\\/, "\\e", text)
	gsub(/-/, "\\-", text)
	return text ~ /^[.']/ ? "\\&" text : text
}

function option(name, value, meaning) {
	value = value == "" || value == "true, false" ? "" : " \\fI" roff(value) "\\fR"
	print ".TP\n\\fB\\-\\-" roff(name) "\\fR" value "\n" roff(meaning) "."
}

function key(name, fallback, value, meaning) {
	print ".TP\n\\fB" roff(name) "\\fR = \\fI" roff(value) "\\fR"
	print roff(meaning) "."
	if (fallback != "")
		print "Default: \\fB" roff(fallback) "\\fR."
}

function config(name, fallback, meaning) {
	print "\n# " meaning "\n#" name " =" (fallback == "" ? "" : " " fallback)
}

/^[|] `--/ {
	sub(/^[|] /, "", $1)
	gsub(/`|--/, "", $1)
	sub(/ [|]$/, "", $2)
	if (form == "options")
		option($1, "", $2)
	if (form == "completion")
		print $1 " -"
}

/^[|] `[a-z]/ {
	sub(/^[|] /, "", $1)
	gsub(/`/, "", $1)
	gsub(/`| /, "", $2)
	sub(/ [|]$/, "", $4)
	sub(/^list of /, "", $3)
	if (form == "options")
		option($1, $3 ~ / to / ? "N" : $3, $4)
	if (form == "keys" && $1 != "config")
		key($1, $2, $3, $4)
	if (form == "config" && $1 != "config")
		config($1, $2, $4)
	if (form == "completion")
		print $1 " " ($3 == "true, false" ? "-" : $3 ~ / to / ? "N" : $3)
}
