/** Files of an agent: inside its folder, by real path. */
import { execFileSync } from 'node:child_process'
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
  existsSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeEach, afterEach, describe, expect, it } from 'vitest'
import { readTextFile, writeTextFile } from '../../../../src/runners/acp/agent-files.js'
import { results } from '../../../support/acp-stage.js'

let base: string
let folder: string
let outside: string
beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), 'acp-files-'))
  folder = join(base, 'inside')
  outside = join(base, 'inside-not')
  mkdirSync(folder)
  mkdirSync(outside)
  writeFileSync(join(folder, 'a.txt'), 'one\ntwo\nthree\n')
  writeFileSync(join(outside, 'secret'), 'secret')
})
afterEach(() => rmSync(base, { recursive: true }))

const read = (path: string, more: object = {}, max = 1000) => readTextFile(folder, { path, ...more }, max)
const refused = { code: -32_602 }

describe('reading', () => {
  it('returns a file, or some of its lines', async () => {
    const path = join(folder, 'a.txt')
    expect(await read(path)).toBe('one\ntwo\nthree\n')
    expect(await read(path, { line: 2, limit: 1 })).toBe('two\n')
    expect(await read(path, { line: 3 })).toBe('three\n')
    expect(await read(path, { limit: 2 })).toBe('one\ntwo\n')
    expect(await read(path, { line: null, limit: null })).toBe('one\ntwo\nthree\n')
    expect(await read(path, { line: 9 })).toBe('')
  })

  it('leaves no file open, whether it was read, was too large, or is none', async () => {
    const path = join(folder, 'a.txt')
    const openFiles = (): number => readdirSync('/proc/self/fd').length
    const before = openFiles()
    for (let count = 0; count < 20; count += 1) {
      await read(path)
      await read(path, { line: 2 })
      await expect(read(path, {}, 5)).rejects.toMatchObject(refused)
      await expect(read(folder)).rejects.toMatchObject(refused)
      await writeTextFile(folder, join(folder, 'b.txt'), 'text')
      await expect(writeTextFile(folder, folder, 'text')).rejects.toMatchObject(refused)
    }
    expect(openFiles()).toBe(before)
  })

  it('goes on after many requests that failed', async () => {
    const request = (path: string) => ['request', 'fs/read_text_file', { path }] as const
    const path = join(folder, 'a.txt')
    const acts = [...Array.from({ length: 20 }, (_, count) => request(join(folder, `missing-${count}`))), request(path)]
    const answers = await results({ acts }, { cwd: folder })
    expect(answers.slice(0, 20)).toEqual(Array(20).fill(expect.objectContaining({ code: -32_002 })))
    expect(answers[20]).toEqual({ content: 'one\ntwo\nthree\n' })
  })

  it('refuses what is outside, however it is named', async () => {
    symlinkSync(outside, join(folder, 'link'))
    symlinkSync(join(outside, 'secret'), join(folder, 'file-link'))
    symlinkSync(join(outside, 'none'), join(folder, 'dangling'))
    for (const path of ['../inside-not/secret', 'link/secret', 'file-link', 'dangling', '..', 'link/none']) {
      await expect(read(`${folder}/${path}`)).rejects.toMatchObject(refused)
    }
    await expect(read('a.txt')).rejects.toMatchObject(refused)
    await expect(read(`${folder}/a\0.txt`)).rejects.toMatchObject(refused)
  })

  it('refuses what is no file, or is too long, and waits for nothing', async () => {
    execFileSync('mkfifo', [join(folder, 'fifo')])
    await expect(read(join(folder, 'fifo'))).rejects.toMatchObject(refused)
    await expect(read(folder)).rejects.toMatchObject(refused)
    await expect(read(join(folder, 'a.txt'), {}, 3)).rejects.toThrow('has 14 bytes, expected at most 3')
    await expect(read(join(folder, 'none'))).rejects.toMatchObject({ code: -32_002 })
  })

  it('follows a link that stays inside, and a folder that is a link itself', async () => {
    symlinkSync(join(folder, 'a.txt'), join(folder, 'same'))
    symlinkSync(folder, join(base, 'alias'))
    expect(await read(join(folder, 'same'), { limit: 1 })).toBe('one\n')
    expect(await readTextFile(join(base, 'alias'), { path: join(base, 'alias', 'a.txt'), limit: 1 }, 100)).toBe('one\n')
  })
})

describe('writing', () => {
  it('creates a file with its folders, and replaces one', async () => {
    await writeTextFile(folder, join(folder, 'x/y/z.txt'), 'new')
    await writeTextFile(folder, join(folder, 'a.txt'), 'short')
    expect(readFileSync(join(folder, 'x/y/z.txt'), 'utf8')).toBe('new')
    expect(readFileSync(join(folder, 'a.txt'), 'utf8')).toBe('short')
  })

  it('writes nothing outside, and creates no folder there', async () => {
    symlinkSync(outside, join(folder, 'link'))
    symlinkSync(join(outside, 'secret'), join(folder, 'file-link'))
    symlinkSync(join(outside, 'none'), join(folder, 'dangling'))
    symlinkSync(join(outside, 'deep'), join(folder, 'dangling-folder'))
    for (const path of [
      '../inside-not/secret',
      'link/x',
      'link/x/y',
      'file-link',
      'dangling',
      'dangling-folder/x',
      '../x/y',
    ]) {
      await expect(writeTextFile(folder, `${folder}/${path}`, 'bad')).rejects.toMatchObject(refused)
    }
    expect(readFileSync(join(outside, 'secret'), 'utf8')).toBe('secret')
    expect(['none', 'x', 'deep'].some((name) => existsSync(join(outside, name)))).toBe(false)
    expect(existsSync(join(base, 'x'))).toBe(false)
  })

  it('writes into no FIFO', async () => {
    execFileSync('mkfifo', [join(folder, 'fifo')])
    await expect(writeTextFile(folder, join(folder, 'fifo'), 'x')).rejects.toMatchObject(refused)
  })
})

describe('over the protocol', () => {
  it('reads and writes where the policy of the kind allows it', async () => {
    const acts = [
      ['request', 'fs/write_text_file', { path: join(folder, 'new'), content: 'hi' }],
      ['request', 'fs/read_text_file', { path: join(folder, 'new') }],
      ['request', 'fs/read_text_file', { path: join(outside, 'secret') }],
    ] as const
    const seen = await results({ acts }, { cwd: folder })
    expect(seen.slice(1)).toMatchObject([{ content: 'hi' }, refused])
    const off = await results({ acts }, { cwd: folder, permissions: 'deny' })
    expect(off).toMatchObject([{ code: -32_601 }, { code: -32_601 }, { code: -32_601 }])
  })
})
