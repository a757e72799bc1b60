/** The file of the token: read, or made for its owner alone; and what is refused. */
import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { AsyncTaskManager } from 'agent-tasks'
import { createTaskPage } from 'agent-tasks/page'
import { tokenOfFile } from '../../../src/page/token-file.js'

const TOKEN = 'abcdefghijklmnop'

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'agent-tasks-token-'))
  onTestFinished(() => rmSync(path, { recursive: true }))
  return path
}

function withFile(text: string, mode = 0o600): string {
  const file = join(folder(), 'token')
  writeFileSync(file, text, { mode })
  chmodSync(file, mode)
  return file
}

const read = (file: string): string => tokenOfFile(file, 'field')

describe('the file of a token', () => {
  it('is made with a random token when there is none, for its owner alone, with its folder', () => {
    const at = folder()
    const file = join(at, 'new', 'token')
    const token = read(file)
    expect(token).toMatch(/^[\w-]{32}$/)
    expect(readFileSync(file, 'utf8')).toBe(`${token}\n`)
    expect([statSync(file).mode & 0o777, statSync(join(at, 'new')).mode & 0o777]).toEqual([0o600, 0o700])
    expect(readdirSync(join(at, 'new'))).toEqual(['token'])
    expect(read(file)).toBe(token)
    expect(read(join(folder(), 'token'))).not.toBe(token)
  })

  it.each([TOKEN, `${TOKEN}\n`, `${TOKEN}\r\n`])('is read as %j', (text) => {
    expect(read(withFile(text))).toBe(TOKEN)
  })

  it.each([0o640, 0o604, 0o660, 0o620, 0o666])('is refused with the mode %i, and stays as it is', (mode) => {
    const file = withFile(TOKEN, mode)
    expect(() => read(file)).toThrow(/^field: got ".*", expected a file that only its owner can read and write/)
    expect([readFileSync(file, 'utf8'), statSync(file).mode & 0o777]).toEqual([TOKEN, mode])
  })

  it.each(['', 'short', `${TOKEN} ${TOKEN}`, `${TOKEN}\n\n`, `${TOKEN}\n${TOKEN}`, `\u00e4${TOKEN}`, 'x'.repeat(5000)])(
    'is refused with the text %.30j, which the error does not show',
    (text) => {
      const file = withFile(text)
      expect(() => read(file)).toThrow(/^field: got ".*", expected a file whose text is a token: at least 16 /)
      expect(() => read(file)).not.toThrow(TOKEN)
      expect(readFileSync(file, 'utf8')).toBe(text)
    },
  )

  it('is closed when it was read, and when it was refused', () => {
    const [good, wrong] = [withFile(TOKEN), withFile('short')]
    const openFiles = (): number => readdirSync('/dev/fd').length
    const before = openFiles()
    for (let time = 0; time < 20; time += 1) {
      read(good)
      expect(() => read(wrong)).toThrow()
    }
    expect(openFiles()).toBe(before)
  })

  it('is not a symbolic link, wherever that leads', () => {
    const file = withFile(TOKEN)
    for (const to of [file, join(folder(), 'nowhere')]) {
      const link = join(folder(), 'link')
      symlinkSync(to, link)
      expect(() => read(link)).toThrow('expected a file, not a symbolic link')
    }
    expect(read(file)).toBe(TOKEN)
  })

  it('is a regular file', () => {
    const at = join(folder(), 'folder')
    mkdirSync(at)
    expect(() => read(at)).toThrow('expected a regular file')
    expect(() => read(join(withFile(TOKEN), 'below'))).toThrow('that this process can read (ENOTDIR)')
  })

  it('belongs to the user that runs the process', () => {
    const file = withFile(TOKEN)
    const user = vi.spyOn(process, 'getuid').mockReturnValue(12_345)
    onTestFinished(() => user.mockRestore())
    expect(() => read(file)).toThrow('a file of the user that runs this process')
  })

  it('that another process has made at the same moment is read', () => {
    const file = join(folder(), 'token')
    const other = withFile(TOKEN)
    // Between the look for the file and its creation.
    const user = vi.spyOn(process, 'pid', 'get').mockImplementation(() => {
      if (!existsSync(file)) linkSync(other, file)
      return 1
    })
    onTestFinished(() => user.mockRestore())
    expect(read(file)).toBe(TOKEN)
  })
})

describe('a page with the file of its token', () => {
  it('has the same link after a restart', async () => {
    const tasks = new AsyncTaskManager()
    onTestFinished(() => tasks.dispose())
    const tokenFile = join(folder(), 'token')
    const first = await createTaskPage({ tasks, tokenFile, port: 0 })
    await first.close()
    const second = await createTaskPage({ tasks, tokenFile, port: Number(new URL(first.url).port) })
    onTestFinished(() => second.close())
    expect(second.url).toBe(first.url)
    const token = decodeURIComponent(first.url.split('#token=')[1] ?? '')
    const { status } = await fetch(new URL('/api/subagents', second.url), {
      headers: { authorization: `Bearer ${token}` },
    })
    expect(status).toBe(200)
  })

  it('is refused with a token beside it, and with a file that is no token: the option is named', async () => {
    const tasks = new AsyncTaskManager()
    onTestFinished(() => tasks.dispose())
    const tokenFile = withFile(TOKEN, 0o644)
    await expect(createTaskPage({ tasks, tokenFile, port: 0 })).rejects.toThrow(
      /^options\.tokenFile: got .* \(chmod 600\)/,
    )
    await expect(createTaskPage({ tasks, tokenFile, token: TOKEN, port: 0 })).rejects.toThrow(
      'expected nothing, because options.token has a value',
    )
    await expect(createTaskPage({ tasks, tokenFile: '', port: 0 })).rejects.toThrow('options.tokenFile')
  })
})
