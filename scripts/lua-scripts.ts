/**
 * `npm run lua`: writes the `.lua` files of `src/bullmq` into TypeScript files, so that they are loaded as any module is and are part of the build (docs/adr/0016).
 *
 * A file is one script, unless others include it (`-- include: name.lua`). `local a, b = unpack(KEYS)` and `local c, d = unpack(ARGV)` name its keys and its
 * arguments; with further ones it is `unpack(ARGV, 1, 2)`. The comment at its head documents it.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

const bullmq = fileURLToPath(new URL('../src/bullmq/', import.meta.url))

/** The folders of scripts, and the file that each becomes. */
const targets = [
  { folder: join(bullmq, 'lua'), file: join(bullmq, 'job-scripts.ts'), script: './script.js' },
  {
    folder: join(bullmq, 'cluster', 'lua'),
    file: join(bullmq, 'cluster', 'cluster-scripts.ts'),
    script: '../script.js',
  },
]

const INCLUDE = /^-- include: (.*)\n/m

/** What the files of scripts are to contain. */
export function writtenScripts(): { readonly file: string; readonly text: string }[] {
  const included = new Set(targets.flatMap(({ folder }) => luaFiles(folder)).flatMap((path) => includesOf(path)))
  return targets.map(({ folder, file, script }) => {
    const scripts = luaFiles(folder).filter((path) => !included.has(path))
    const head = `/** Made from the files of \`lua/\` by \`npm run lua\`: change those. */\nimport { script } from '${script}'\n`
    const shared = [...new Set(scripts.flatMap((path) => includesOf(path)))].sort()
    return { file, text: [head, ...shared.map(toShared), ...scripts.map(toExport)].join('\n') }
  })
}

const luaFiles = (folder: string): string[] =>
  readdirSync(folder)
    .filter((name) => name.endsWith('.lua'))
    .sort()
    .map((name) => join(folder, name))

const includesOf = (path: string): string[] =>
  (INCLUDE.exec(readFileSync(path, 'utf8'))?.[1] ?? '')
    .split(', ')
    .filter((name) => name !== '')
    .map((name) => join(dirname(path), name))

function toExport(path: string): string {
  const name = basename(path, '.lua').replaceAll('-', '_').toUpperCase()
  const text = readFileSync(path, 'utf8')
  const documentation = (/^(?:-- .*\n)*/.exec(text)?.[0] ?? '')
    .replace(INCLUDE, '')
    .replaceAll('-- ', ' * ')
    .replace(/^ \* Returns /m, ' * @returns ')
  const includes = includesOf(path)
  const whole = [...includes, path].map((each) => readFileSync(each, 'utf8')).join('')
  const [keys, args] = [namesOf(path, whole, 'KEYS'), namesOf(path, whole, 'ARGV')]
  const list = (names: readonly string[]): string => `[${names.map((each) => `'${each}'`).join(', ')}]`
  const parts = includes.map((each) => `\${${sharedName(each)}}`).join('')
  const lua = `\`${parts}\n${quoted(text)}\``
  return `/**\n${documentation} */\nexport const ${name} = script(\n  ${list(keys)},\n  ${list(args)},\n  ${lua},\n)\n`
}

const toShared = (path: string): string => `const ${sharedName(path)} = \`\n${quoted(readFileSync(path, 'utf8'))}\`\n`

const sharedName = (path: string): string =>
  basename(path, '.lua').replace(/-(.)/g, (_, letter: string) => letter.toUpperCase())

/** Without comments and empty lines, inside backquotes. */
const quoted = (lua: string): string =>
  lua
    .replace(/^ *--.*\n/gm, '')
    .replace(/\n{2,}/g, '\n')
    .replace(/[\\`$]/g, (character) => `\\${character}`)

function namesOf(path: string, lua: string, from: 'KEYS' | 'ARGV'): string[] {
  const found = [...lua.matchAll(new RegExp(`^local ([\\w, ]+) = unpack\\(${from}(?:, 1, (\\d+))?\\)$`, 'gm'))]
  const [first] = found
  if (first === undefined) return []
  const names = (first[1] ?? '').split(', ')
  const count = first[2]
  if (found.length > 1 || (count !== undefined && Number(count) !== names.length)) {
    throw new Error(
      `${path}: expected one line 'local … = unpack(${from}, 1, ${names.length})', got ${found.map(([line]) => line).join(' and ')}`,
    )
  }
  return names
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  for (const { file, text } of writtenScripts()) writeFileSync(file, text)
}
