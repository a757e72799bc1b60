/**
 * npm's script `prepare`: builds `dist` when npm packs this package, which is in `npm pack`, in `npm publish`, and when it is installed from a git URL.
 * Plain JavaScript, because it also runs where TypeScript and tsx are not installed.
 */
import { spawnSync } from 'node:child_process'
import { createRequire } from 'node:module'

// npm sets this variable for a package that it packs, and for a linked one. It is unset in `npm ci` and `npm install` of a clone, which need no build.
const isPacked = process.env.npm_package_resolved !== undefined

if (isPacked && isInstalled('typescript')) {
  // `npm pack --json` prints its result to standard output.
  const { status } = spawnSync('npm', ['run', '--silent', 'built'], { stdio: ['ignore', 2, 2] })
  process.exitCode = status ?? 1
}

/** @param {string} name */
function isInstalled(name) {
  try {
    createRequire(import.meta.url).resolve(`${name}/package.json`)
    return true
  } catch {
    return false
  }
}
