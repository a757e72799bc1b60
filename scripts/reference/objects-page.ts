/** Makes docs/objects.md: the members of the objects that a host works with, from their TSDoc comments. */
import { callOf, errorsOf, memberNodesOf, commentOf } from './source.js'
import { table } from './table.js'

interface ObjectSection {
  readonly title: string
  readonly intro: string
  readonly interfaces: readonly (readonly [file: string, name: string])[]
}

const conversation = 'src/host/conversations/conversation.ts'
const runner = 'src/engine/runner.ts'

const sections: readonly ObjectSection[] = [
  {
    title: 'A conversation',
    intro:
      'What `tasks.conversation(id)` returns, with the option `respond`. `send` has the options `id` and others, below.',
    interfaces: [[conversation, 'Conversation']],
  },
  { title: 'The options of `send`', intro: '', interfaces: [[conversation, 'SendOptions']] },
  {
    title: 'A turn',
    intro: 'What `respond` receives. With `keepTurns` it returns the messages of the turn.',
    interfaces: [[conversation, 'ConversationTurn']],
  },
  {
    title: 'The delivery of a turn',
    intro: '`turn.delivery`, if the turn has a message about results.',
    interfaces: [['src/features/delivery/auto-trigger.ts', 'TurnDelivery']],
  },
  {
    title: 'A kept turn',
    intro: 'What `conversation.turns()` returns.',
    interfaces: [
      ['src/store/store.ts', 'TurnFields'],
      ['src/host/conversations/conversation.ts', 'KeptTurn'],
    ],
  },
  {
    title: 'A handle',
    intro: 'What `launch` returns.',
    interfaces: [['src/host/task-handle.ts', 'TaskHandle']],
  },
  {
    title: 'The input of a subagent',
    intro: 'The first argument of its function.',
    interfaces: [
      [runner, 'RunInput'],
      ['src/tools/subagents.ts', 'SubagentRequest'],
    ],
  },
  {
    title: 'The context of a run',
    intro: 'The second argument of its function.',
    interfaces: [
      [runner, 'RunContext'],
      ['src/engine/steps.ts', 'RunSteps'],
    ],
  },
]

/** Returns the page, and the problems of the descriptions. */
export function objectsPage(): { readonly page: string; readonly problems: readonly string[] } {
  const problems: string[] = []
  const parts = sections.flatMap(({ title, intro, interfaces }) => {
    const members = interfaces.flatMap(([file, name]) => memberNodesOf(file, name))
    const rows = new Map<string, readonly string[]>()
    for (const member of members) {
      const name = member.name?.getText() ?? ''
      const text = commentOf(member)
      if (name === '' || name.startsWith('[')) continue
      if (text === '' && !rows.has(name)) problems.push(`${title}: ${name} has no description`)
      rows.set(name, [`\`${callOf(member)}\``, text, errorsOf(member)])
    }
    return [`## ${title}`, ...(intro === '' ? [] : [intro]), table(['member', 'meaning', 'errors'], [...rows.values()])]
  })
  const page = [
    '# Objects',
    '<!-- Made by `npm run docs:options` from the sources. Change the TSDoc there and run it again. -->',
    'What a host works with. The API reference (`npm run docs:api`) has the types.',
    ...parts,
  ]
  return { page: `${page.join('\n\n')}\n`, problems }
}
