/**
 * `npm run faults`: plants every fault, and expects the property that the fault names to fail. Without a fault, each property must hold. It reports
 * faults that no property caught, and invariants without a fault.
 *
 * FC_SEED      another seed for all properties, or `random`
 * FAULT        only the faults of this invariant, or with this text in their name
 * FAULT_SHOW   also prints the counterexamples
 */
import fc from 'fast-check'
import { agentCommandsProperty } from '../model/agent-commands.property.js'
import { agentFaults } from '../model/agent-faults.js'
import { jobFaults, jobProperties } from '../model/job-faults.js'
import { laneModelProperty } from '../model/lanes.property.js'
import { crashFaults, stopFaults } from '../race/crash-faults.js'
import { stopScripts } from '../race/crash-script.js'
import { crashesProperty } from '../race/crashes.property.js'
import { wakingFaults } from '../race/waking-faults.js'
import { wakingProperty } from '../race/waking.property.js'
import { conversationFaults } from '../race/conversation-faults.js'
import { conversationsProperty } from '../race/conversations.property.js'
import { ownerLimitFaults } from '../race/owner-limits-faults.js'
import { ownerLimitsProperty } from '../race/owner-limits.property.js'
import { deliveryFaults } from '../race/delivery-faults.js'
import { familiesProperty } from '../race/families.property.js'
import { familyFaults } from '../race/family-faults.js'
import { laneFaults } from '../race/lane-faults.js'
import { lanesProperty } from '../race/lanes.property.js'
import { talkFaults } from '../race/talk-faults.js'
import { talkingProperty, waitingProperty } from '../model/registry.property.js'
import { talkProperty } from '../race/talk.property.js'
import { keptTurnsFaults } from '../race/kept-turns-faults.js'
import { keptTurnsProperty } from '../race/kept-turns.property.js'
import { restartFaults } from '../race/restart-faults.js'
import { restartsProperty } from '../race/restarts.property.js'
import { stepFaults } from '../race/durable-steps-faults.js'
import { durableStepsProperty } from '../race/durable-steps.property.js'
import { waitingFaults } from '../race/waiting-faults.js'
import { waitingTasksProperty, type AlterManager } from '../race/waiting-tasks.property.js'
import { sessionFaults } from '../model/session-faults.js'
import { sessionsProperty } from '../model/sessions.property.js'
import { hostileCallbacksProperty } from '../model/hostile-callbacks.property.js'
import { hostileConfigsProperty } from '../model/hostile-configs.property.js'
import { callbackFaults, configFaults, valueFaults } from '../model/hostile-faults.js'
import { hostileValuesProperty } from '../model/hostile-values.property.js'
import { mcpTaskFaults, traceFaults } from '../model/mcp-faults.js'
import { mcpTasksProperty } from '../model/mcp-tasks.property.js'
import { pageFaults } from '../model/page-faults.js'
import { pageProperty } from '../model/page.property.js'
import { tracesProperty } from '../model/traces.property.js'
import type { ControllableEngine } from './controllable-engine.js'
import { registryFaults, type PlantedFault } from './planted-faults.js'
import { seed } from './property.js'
import { createSubject } from './subject.js'

const soundRuns = 150
const defaultMaxRuns = 2000

/** A fault, and a property that must fail with it. */
interface Planting {
  readonly name: string
  readonly invariant: string
  readonly description: string
  readonly property: string
  readonly broken: () => fc.IRawProperty<unknown>
  readonly maxRuns?: number | undefined
}

/** The properties by name, without a fault. */
const sound = new Map<string, () => fc.IRawProperty<unknown>>([
  ['lanes', lanesProperty],
  ['lane model', laneModelProperty],
  ['agent commands', agentCommandsProperty],
  ['crashes', crashesProperty],
  ['stops', () => crashesProperty({}, stopScripts)],
  ['waking', wakingProperty],
  ['durable steps', () => durableStepsProperty()],
  ['families', familiesProperty],
  ['restarts', restartsProperty],
  ['kept turns', () => keptTurnsProperty()],
  ['owner limits', () => ownerLimitsProperty()],
  ['conversations', () => conversationsProperty()],
  ['talk', talkProperty],
  ['sessions', sessionsProperty],
  ...jobProperties,
  ['mcp tasks', mcpTasksProperty],
  ['traces', tracesProperty],
  ['waiting tasks', waitingTasksProperty],
  ['page', pageProperty],
  ['hostile values', hostileValuesProperty],
  ['hostile callbacks', hostileCallbacksProperty],
  ['hostile configurations', hostileConfigsProperty],
])

const registryAndDelivery = [...registryFaults, ...deliveryFaults].map((fault: PlantedFault): Planting => {
  const { property, maxRuns, name, invariant, description } = fault
  sound.set(property.name, () => property.create(createSubject()))
  const broken = () => property.create(createSubject(fault))
  return { name, invariant, description, maxRuns, property: property.name, broken }
})

const lanes = laneFaults.flatMap(({ create, isForModel = false, ...fault }): Planting[] => {
  const byModel = { ...fault, property: 'lane model', broken: () => laneModelProperty({ createTaskManager: create }) }
  return isForModel ? [byModel] : [{ ...fault, property: 'lanes', broken: () => lanesProperty(create) }, byModel]
})

const agent = agentFaults.map(({ createTool, ...fault }): Planting => ({
  ...fault,
  property: 'agent commands',
  broken: () => agentCommandsProperty(createTool),
}))

const crashes = crashFaults.map((fault): Planting => ({
  ...fault,
  property: 'crashes',
  broken: () => crashesProperty(fault),
  maxRuns: 5000,
}))

const stops = stopFaults.map((fault): Planting => ({
  ...fault,
  property: 'stops',
  broken: () => crashesProperty(fault, stopScripts),
  maxRuns: 5000,
}))

const waking = wakingFaults.map((fault): Planting => ({
  ...fault,
  property: 'waking',
  broken: () => wakingProperty(fault),
  maxRuns: 5000,
}))

const durableSteps = stepFaults.map((fault): Planting => ({
  ...fault,
  property: 'durable steps',
  broken: () => durableStepsProperty(fault),
}))

const families = familyFaults.map(({ sabotage, ...fault }): Planting => ({
  ...fault,
  property: 'families',
  broken: () => familiesProperty(sabotage),
}))

const restarts = restartFaults.map(({ wiring, ...fault }): Planting => ({
  ...fault,
  property: 'restarts',
  broken: () => restartsProperty(wiring),
}))

const keptTurns = keptTurnsFaults.map(({ change, ...fault }): Planting => ({
  ...fault,
  property: 'kept turns',
  broken: () => keptTurnsProperty(change),
}))

const ofOwners = [
  ...ownerLimitFaults.map(({ alter, ...fault }): Planting => ({
    ...fault,
    property: 'owner limits',
    broken: () => ownerLimitsProperty(alter),
  })),
  ...conversationFaults.map(({ alter, ...fault }): Planting => ({
    ...fault,
    property: 'conversations',
    broken: () => conversationsProperty(alter),
  })),
]

const sessions = sessionFaults.map(({ alter, ...fault }): Planting => ({
  ...fault,
  property: 'sessions',
  broken: () => sessionsProperty(alter),
}))

/** Properties that compare the registry with its model, which also covers waiting tasks, questions and messages. */
const byModel = (create: typeof waitingProperty, alter: AlterManager) => (): fc.IRawProperty<unknown> => {
  let engine: ControllableEngine
  return create(
    createSubject({
      managerOptions: (options) => {
        engine = options.engine as ControllableEngine
        return options
      },
      wrapManager: (manager) => {
        alter(manager, engine)
        return manager
      },
    }),
  )
}
sound.set('waiting', () => waitingProperty(createSubject()))
sound.set('talking', () => talkingProperty(createSubject()))

const talk = talkFaults.flatMap((fault): Planting[] => {
  const { breakManager } = fault
  const byRace = { ...fault, property: 'talk', broken: () => talkProperty(fault) }
  if (breakManager === undefined || fault.invariant === 'F11') return [byRace]
  return [
    byRace,
    { ...fault, property: 'talking', broken: byModel(talkingProperty, (manager) => breakManager(manager)) },
  ]
})

const waiting = waitingFaults.flatMap(({ alter, needsStore = false, ...fault }): Planting[] => {
  const byRace = { ...fault, property: 'waiting tasks', broken: () => waitingTasksProperty(alter) }
  return needsStore ? [byRace] : [byRace, { ...fault, property: 'waiting', broken: byModel(waitingProperty, alter) }]
})

const page = pageFaults.map(({ state, access, ...fault }): Planting => ({
  ...fault,
  property: 'page',
  broken: () => pageProperty({ ...(state && { state }), ...(access && { access }) }),
}))

const mcp = [
  ...mcpTaskFaults.map(({ alter, ...fault }): Planting => ({
    ...fault,
    property: 'mcp tasks',
    broken: () => mcpTasksProperty(alter),
  })),
  ...traceFaults.map(({ alter, ...fault }): Planting => ({
    ...fault,
    property: 'traces',
    broken: () => tracesProperty(alter),
  })),
]

const hostile = [
  ...valueFaults.map((fault): Planting => ({
    ...fault,
    property: 'hostile values',
    broken: () => hostileValuesProperty(fault),
  })),
  ...callbackFaults.map((fault): Planting => ({
    ...fault,
    property: 'hostile callbacks',
    broken: () => hostileCallbacksProperty(fault),
  })),
  ...configFaults.map((fault): Planting => ({
    ...fault,
    property: 'hostile configurations',
    broken: () => hostileConfigsProperty(fault.parse),
  })),
]

const all = [
  ...registryAndDelivery,
  ...lanes,
  ...agent,
  ...crashes,
  ...stops,
  ...waking,
  ...durableSteps,
  ...families,
  ...restarts,
  ...keptTurns,
  ...ofOwners,
  ...sessions,
  ...waiting,
  ...jobFaults,
  ...page,
  ...talk,
  ...mcp,
  ...hostile,
]
const only = process.env['FAULT'] ?? ''
const plantings = all.filter(({ name, invariant }) => only === '' || invariant === only || name.includes(only))
const started = performance.now()
const problems: string[] = []

for (const property of new Set(plantings.map((planting) => planting.property))) await expectSound(property)
for (const planting of plantings) await expectCaught(planting)
const first = (count: number, letter: string): string[] => Array.from({ length: count }, (_, n) => `${letter}${n + 1}`)
for (const invariant of [
  ...first(10, 'A'),
  ...first(10, 'S'),
  ...first(7, 'K'),
  'K10',
  'K12',
  'K13',
  ...first(13, 'F'),
  'F15',
  'F16',
  'F17',
  'F18',
  'F19',
  'F20',
  'H1',
  'H6',
  'H7',
  'H9',
]) {
  if (!all.some((fault) => fault.invariant === invariant)) problems.push(`${invariant} has no planted fault`)
}
const names = all.filter(({ name }, index) => all[index - 1]?.name !== name).map(({ name }) => name)
for (const name of new Set(names.filter((name, index) => names.indexOf(name) !== index))) {
  problems.push(`two faults are called ${name}`)
}

for (const problem of problems) console.error(`faults: ${problem}`)
const seconds = ((performance.now() - started) / 1000).toFixed(1)
const planted = new Set(plantings.map(({ name }) => name)).size
console.log(`faults: ${planted} planted, ${problems.length} problems, seed ${seed}, ${seconds} s`)
process.exit(problems.length > 0 ? 1 : 0)

async function expectSound(name: string): Promise<void> {
  const create = sound.get(name)!
  const details = await fc.check(create(), { seed, numRuns: soundRuns, endOnFailure: true })
  if (!details.failed) {
    console.log(`holds       ${name} (${soundRuns} runs)`)
    return
  }
  console.log(`BROKEN      ${name}`)
  problems.push(`${name} fails without a fault:\n${await fc.asyncDefaultReportMessage(details)}`)
}

async function expectCaught(planting: Planting): Promise<void> {
  const { name, invariant, description, property, broken, maxRuns = defaultMaxRuns } = planting
  const details = await fc.check(broken(), { seed, numRuns: maxRuns, endOnFailure: true })
  if (details.failed) {
    console.log(`caught  ${invariant.padEnd(3)} ${name} by ${property} after ${details.numRuns} runs`)
    if (process.env['FAULT_SHOW'] !== undefined) console.log(await fc.asyncDefaultReportMessage(details))
  } else {
    console.log(`MISSED  ${invariant.padEnd(3)} ${name} by ${property} in ${maxRuns} runs: ${description}`)
    problems.push(`${name} was missed by ${property}`)
  }
}
