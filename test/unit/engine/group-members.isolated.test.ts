/** The processes of a group where there is no /proc: what `ps` lists. */
import { expect, it, vi } from 'vitest'

const spawnSync = vi.fn()
vi.mock('../../../src/system/node-builtins.js', async (load) => ({
  ...(await load<object>()),
  nodePlatform: 'darwin',
  nodeBuiltin: () => ({ spawnSync }),
}))
const { countMembers, membersOf } = await import('../../../src/engine/group-members.js')

it('are those with its number, without zombies', () => {
  const rows = ['    1 Ss       1', '  412 S+     412', '  413 Z      412', '  414 R      412', ' 4120 S     4120']
  spawnSync.mockReturnValue({ stdout: `${rows.join('\n')}\n` })
  expect(membersOf(412)).toEqual([412, 414])
  expect(membersOf(41)).toEqual([])
  expect(spawnSync).toHaveBeenCalledWith('ps', ['-A', '-o', 'pid=,stat=,pgid='], { encoding: 'utf8' })
})

it('are counted only if the system knows the group', () => {
  spawnSync.mockReset().mockReturnValue({ stdout: '412 S 412\n414 R 412\n' })
  const kill = vi.spyOn(process, 'kill')
  kill.mockImplementation(() => {
    throw Object.assign(new Error('kill ESRCH'), { code: 'ESRCH' })
  })
  expect([countMembers(412), spawnSync.mock.calls.length]).toEqual([0, 0])
  kill.mockImplementation(() => {
    throw Object.assign(new Error('kill EPERM'), { code: 'EPERM' })
  })
  expect(countMembers(412)).toBe(2)
  kill.mockRestore()
})
