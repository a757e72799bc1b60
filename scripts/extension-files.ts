/** Adds to the extension what is not bundled: manifest, icons, README and licence. Then packs all files into an archive. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, relative, sep } from 'node:path'
import { zipSync, type Zippable } from 'fflate'
import type { Plugin } from 'vite'
import { createManifest, HOSTS, ICON_SIZES, PERMISSIONS } from '../src/client/extension/manifest.js'
import { drawIcon } from './extension-icons.js'

const archive = 'dist/agent-tasks-extension.zip'
/** The time of every file in the archive. It is fixed, so that the same files give the same archive. */
const PACKED_AT = new Date(1980, 0, 1)

export function extensionFiles(): Plugin {
  const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string }
  let folder = ''
  return {
    name: 'extension-files',
    configResolved: ({ root, build }) => {
      folder = join(root, build.outDir)
    },
    generateBundle() {
      const manifest = `${JSON.stringify(createManifest(version), null, 2)}\n`
      this.emitFile({ type: 'asset', fileName: 'manifest.json', source: manifest })
      for (const size of ICON_SIZES) {
        this.emitFile({ type: 'asset', fileName: `icons/${size}.png`, source: drawIcon(size) })
      }
      this.emitFile({ type: 'asset', fileName: 'README.md', source: readme() })
      this.emitFile({ type: 'asset', fileName: 'LICENSE', source: readFileSync('LICENSE', 'utf8') })
    },
    closeBundle: () => writeFileSync(archive, pack(folder)),
  }
}

function pack(folder: string): Uint8Array {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  const paths = files.map((entry) => join(entry.parentPath, entry.name)).sort()
  const entries: Zippable = {}
  for (const path of paths) {
    entries[relative(folder, path).split(sep).join('/')] = [readFileSync(path), { mtime: PACKED_AT, level: 9 }]
  }
  return zipSync(entries)
}

function readme(): string {
  const rows = Object.entries(PERMISSIONS).map(([name, reason]) => `| \`${name}\` | ${reason} |`)
  return `# agent-tasks: the browser extension

Lets an agent-tasks server act in the tabs of this browser that you put under its control, and in no others.

1. Open \`chrome://extensions\`, and switch on **Developer mode**.
2. **Load unpacked**: choose this folder.
3. Start a server: \`npx agent-tasks serve\`. The options page, which has opened, shows when the extension is connected.
4. Click the icon of agent-tasks in a tab to put it under control. Click again to take it back.

| permission | why |
|---|---|
${rows.join('\n')}
| ${HOSTS.map((host) => `\`${host}\``).join(', ')} | shows what answers at the address of the server, if it is another program |

The extension loads no scripts from elsewhere, adds no scripts to pages by itself, and accepts no messages from pages or other extensions. The token of the
server stays in the storage of the extension. The extension does not run in incognito windows.
`
}
