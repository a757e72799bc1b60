// What is said where the packages of several machines are missing.
import { expect, it } from 'vitest'
import { loadBullmq } from '../../../src/cli/load-bullmq.js'

it('names the packages that are missing, and how to install them', async () => {
  const cause = Object.assign(new Error("Cannot find package 'bullmq'"), { code: 'ERR_MODULE_NOT_FOUND' })
  await expect(loadBullmq(() => Promise.reject(cause))).rejects.toMatchObject({
    code: 'PACKAGES_MISSING',
    cause,
    message: expect.stringContaining('Run: npm install bullmq@6 ioredis@5') as unknown,
  })
})

it('passes on what is loaded, and any other error', async () => {
  expect(await loadBullmq(() => Promise.resolve(1))).toBe(1)
  await expect(loadBullmq(() => Promise.reject(new TypeError('broken')))).rejects.toThrow(TypeError)
})
