/**
 * The npm script `prepare`: builds `dist` when npm packs this package. npm does that in `npm pack`, in `npm publish`, and when it installs the package
 * from a git URL. This file is plain JavaScript, because it also runs where TypeScript and tsx are not installed.
 */
import { spawnSync } from 'node:child_process'
import { createRequire } from 'node:module'

// npm sets this variable for a package that it packs or links. It does not set it in `npm ci` and `npm install` of a clone, which need no build.
const isPacked = process.env.npm_package_resolved !== undefined

if (isPacked && isInstalled('typescript')) {
  // The output goes to stderr, because `npm pack --json` prints its result to stdout.
  const { status } = spawnSync('npm', ['run', '--silent', 'built'], { stdio: ['ignore', 2, 2] })
  process.exitCode = status ?? 1
}

function isInstalled(name) {
  try {
    createRequire(import.meta.url).resolve(`${name}/package.json`)
    return true
  } catch {
    return false
  }
}
