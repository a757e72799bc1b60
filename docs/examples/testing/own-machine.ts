/** A machine of your own that loses an edit, and a version that does not. It uses only the race kit. */
import type { Race, RaceOptions } from 'agent-tasks/testing'
import { assign, createActor, fromPromise, setup } from 'xstate'

interface Draft {
  /** What the writer sees. */
  readonly text: string
  /** What was sent to the server. */
  readonly sent: string
}

/** An editor that saves half a second after the last edit. `isOutdated` decides whether a save must be followed by another. */
function openEditor(race: Race, isOutdated: (draft: Draft) => boolean) {
  const server = { text: '' }
  const machine = setup({
    types: { context: {} as Draft, events: {} as { readonly type: 'edit'; readonly text: string } },
    actors: {
      save: fromPromise<string, string>(async ({ input }) => {
        await race.pause('the server stores it')
        return (server.text = input)
      }),
    },
    actions: {
      keep: assign({ text: ({ event }) => event.text }),
      send: assign({ sent: ({ context }) => context.text }),
    },
    guards: { isOutdated: ({ context }) => isOutdated(context) },
    delays: { pause: 500 },
  }).createMachine({
    context: { text: '', sent: '' },
    initial: 'saved',
    states: {
      saved: { on: { edit: { target: 'edited', actions: 'keep' } } },
      edited: { on: { edit: { target: 'edited', reenter: true, actions: 'keep' } }, after: { pause: 'saving' } },
      saving: {
        entry: 'send',
        on: { edit: { actions: 'keep' } },
        invoke: {
          src: 'save',
          input: ({ context }) => context.text,
          onDone: [{ guard: 'isOutdated', target: 'edited' }, { target: 'saved' }],
        },
      },
    },
  })
  // The delays of the machine are timers of the race.
  return { server, editor: createActor(machine, { clock: race.clock }).start() }
}

type World = ReturnType<typeof openEditor>

const race = (name: string, isOutdated: (draft: Draft) => boolean): RaceOptions<World> => ({
  name,
  source: { module: './own-machine.js', name },
  setup: (race) => openEditor(race, isOutdated),
  actors: {
    writer: [
      { label: 'types a', run: ({ editor }) => editor.send({ type: 'edit', text: 'a' }) },
      { label: 'types ab', run: ({ editor }) => editor.send({ type: 'edit', text: 'ab' }) },
    ],
  },
  atEnd: { 'the last text is stored': ({ server, editor }) => server.text === editor.getSnapshot().context.text },
  teardown: ({ editor }) => editor.stop(),
})

/** Wrong: an edit that comes while the editor is saving is never saved. */
export const forgetfulEditor = race('forgetfulEditor', () => false)

/** Right: after each save it looks whether there is more to save. */
export const carefulEditor = race('carefulEditor', ({ text, sent }) => text !== sent)
