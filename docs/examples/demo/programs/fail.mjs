// Fails the way programs do: words on stderr, and an exit code.
console.error('reading settings.toml')
console.error('error: unknown key "colour" in line 3')
process.exitCode = 3
