/** The part Instances: the instances on which commands run. */
import { usePage } from '../page-state.js'
import { EmptyState } from '../shell/empty-state.js'
import type { PartProps } from '../shell/part-props.js'
import { InstanceCard } from './instance-card.js'

export function InstancesPart({ address }: PartProps) {
  const { instances, hello } = usePage().view.value
  return (
    <section class="part" aria-labelledby="instances-heading">
      <div class="part-head">
        <h1 id="instances-heading">Instances</h1>
      </div>
      {instances.length > 0 ? (
        <div class="cards">
          {instances.map((instance) => (
            <InstanceCard key={instance.id} instance={instance} isOpen={address.subject === instance.id} />
          ))}
        </div>
      ) : hello?.hasCommands === false ? (
        <EmptyState title="This page has no task manager" command="await createTaskPage({ tasks, taskManager })">
          Commands run on instances of a task manager. Pass one to the page:
        </EmptyState>
      ) : hello?.hints === 'mcp' ? (
        <EmptyState
          title="No instance is connected"
          command={'"instances": [{ "name": "browser", "command": "npx", "args": ["@playwright/mcp", "--headless"] }]'}
        >
          An instance is another MCP server, on which commands run. Add it to agent-tasks.config.json, and start this
          server again:
        </EmptyState>
      ) : (
        <EmptyState title="No instance is connected" command="npx agent-tasks serve --demo">
          An instance is a set of functions, an MCP server or a remote worker that runs commands. Connect one, or look
          at the demo:
        </EmptyState>
      )}
    </section>
  )
}
