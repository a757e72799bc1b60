/** Which new tabs pages under control have opened. */
import { expect, it } from 'vitest'
import { createOpenedTabs } from '../../../../src/client/extension/opened-tabs.js'

it('E1: takes one tab for each announcement, and none that comes much later or before', () => {
  let now = 0
  const opened = createOpenedTabs(() => now)
  expect(opened.isAnnounced()).toBe(false)
  opened.announce()
  opened.announce()
  now = 100
  expect([opened.isAnnounced(), opened.isAnnounced(), opened.isAnnounced()]).toEqual([true, true, false])
  opened.announce()
  now = 2101
  expect(opened.isAnnounced()).toBe(false)
  opened.announce()
  expect(opened.isAnnounced()).toBe(true)
})
