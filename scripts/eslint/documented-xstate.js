/**
 * ESLint rule: code may use only those members of XState's objects that XState documents. A new version 5.x may change the others.
 *
 * The rule uses types, and looks at each access: `a.b`, `a['b']`, destructuring, and `'b' in a`. If XState declares the member, `DOCUMENTED` must list
 * it under the interface or class that declares it. The rule also refuses to change XState's objects, to wrap them in a Proxy, and to cast them to a
 * type with members that are not documented. It refuses names that are known to be internal on every object, whatever its type.
 */

/** The documented members, by the declaration that has them. The comment above a group says where XState documents it. */
export const DOCUMENTED = {
  // https://stately.ai/docs/actors, and the TSDoc of `Actor`. `ref`, `src` and `systemId`: https://stately.ai/docs/system
  Actor: members(
    'id sessionId system ref src systemId start stop send subscribe on select getSnapshot getPersistedSnapshot toJSON',
  ),
  ActorRef: members('id sessionId system src start stop send on select getSnapshot getPersistedSnapshot toJSON'),
  BaseActorRef: members('send'),
  ActorLike: members('send'),
  Subscribable: members('subscribe'),
  InteropSubscribable: members('subscribe'),
  Readable: members('get'),
  Subscription: members('unsubscribe'),
  Observer: members('next error complete'),
  // https://stately.ai/docs/actors#creating-actors, and the TSDoc of `ActorOptions`
  ActorOptions: members('clock logger parent id systemId input snapshot src inspect'),
  Clock: members('setTimeout clearTimeout'),
  SimulatedClock: members('now start increment set setTimeout clearTimeout'),
  // https://stately.ai/docs/system
  ActorSystem: members('get getAll inspect getSnapshot'),
  // https://stately.ai/docs/actors#custom-actor-logic, and the TSDoc of `ActorLogic`
  ActorLogic: members('config transition getInitialSnapshot restoreSnapshot start getPersistedSnapshot'),
  ActorScope: members('self id sessionId logger defer emit system stopChild actionExecutor'),
  // https://stately.ai/docs/states, and the TSDoc of `MachineSnapshotBase`
  Snapshot: members('status output error'),
  ActiveMachineSnapshot: members('status output error'),
  DoneMachineSnapshot: members('status output error'),
  ErrorMachineSnapshot: members('status output error'),
  StoppedMachineSnapshot: members('status output error'),
  MachineSnapshotBase: members(
    'status error context value matches can hasTag getMeta children tags historyValue machine toJSON',
  ),
  PromiseSnapshot: members('input'),
  TransitionSnapshot: members('context'),
  // https://stately.ai/docs/machines, and the TSDoc of `StateMachine`
  StateMachine: members(
    'config id version root states events definition provide transition resolveState getInitialSnapshot restoreSnapshot getPersistedSnapshot toJSON',
  ),
  // https://stately.ai/docs/inspection, and the TSDoc of `ActorOptions.inspect`
  BaseInspectionEventProperties: members('rootId actorRef'),
  InspectedActorEvent: members('type'),
  InspectedEventEvent: members('type sourceRef event'),
  InspectedSnapshotEvent: members('type event snapshot'),
  InspectedTransitionEvent: members('type event snapshot'),
  InspectedMicrostepEvent: members('type event snapshot'),
  InspectedActionEvent: members('type action params'),
  // https://stately.ai/docs/setup, https://stately.ai/docs/actions and https://stately.ai/docs/guards: what implementations get
  SetupReturn: members('createMachine extend assign sendTo raise log cancel stopChild emit enqueueActions spawnChild'),
  EventObject: members('type'),
  ParameterizedObject: members('type params'),
  UnifiedArg: members('context event self system'),
  AssignArgs: members('spawn'),
  GuardArgs: members('context event'),
  Mapper: members('context event self'),
  ContextFactory: members('input self spawn'),
  CollectActionsArg: members('check enqueue'),
  ActionEnqueuer: members('assign raise sendTo sendParent spawnChild stopChild cancel emit'),
  // https://stately.ai/docs/callback-actors and https://stately.ai/docs/promise-actors
  CallbackLogicFunction: members('input system self sendBack receive emit'),
  // https://stately.ai/docs/actors: the events that XState sends to a parent
  DoneActorEvent: members('type output actorId'),
  ErrorActorEvent: members('type error actorId'),
}

/** Members of XState's own objects that are refused on every object, because a cast or `any` would hide them. */
export const INTERNAL = members(
  '_parent _snapshot _relay _sendInspectionEvent _processingStatus _process _stop _stopProcedure _complete _error _reportError ' +
    '_initState _deferred _doneEvent _actorScope _systemId _syncSnapshot _register _unregister _set _bookId _clock _logger ' +
    '_scheduledEvents _nodes _transitions _collectInitialActions',
)

/**
 * Internal members whose names are ordinary words. They are refused only on objects of the type `any` or `unknown`, because on other objects the type
 * says whose member it is.
 */
export const INTERNAL_WORDS = members('mailbox scheduler eventListeners observers logic implementations')

/** Declarations whose objects must not be changed, wrapped, or cast to a type with other members. */
const GUARDED = new Set(['Actor', 'ActorRef', 'ActorSystem', 'ActorScope', 'StateMachine', 'StateNode'])

const DOCUMENTED_MODULES = new Set(['xstate', 'xstate/graph'])

const CHANGING = { Object: ['assign', 'defineProperty', 'defineProperties', 'setPrototypeOf'], Reflect: ['*'] }

/** @type {import('eslint').Rule.RuleModule} */
export const documentedXstate = {
  meta: {
    type: 'problem',
    docs: { description: 'use only documented members of XState' },
    schema: [],
    messages: {
      undocumented: 'XState does not document {{owner}}.{{name}}: a new version may change it.',
      internal: '{{name}} is internal to XState: a new version may change it.',
      changed: "XState's objects must not be changed or wrapped.",
      cast: 'This cast gives an XState object the member {{name}}, which XState does not document.',
      module: "Import from 'xstate': {{name}} is not documented.",
    },
  },
  create(context) {
    const { program, esTreeNodeToTSNodeMap, getTypeAtLocation } = context.sourceCode.parserServices
    const checker = program.getTypeChecker()

    /** The type of an expression or pattern, without null and undefined. */
    const typeOf = (node) => checker.getNonNullableType(getTypeAtLocation(node))

    const isAnyOrUnknown = (type) => type.intrinsicName === 'any' || type.intrinsicName === 'unknown'

    /** @returns the names of XState's declarations that declare the member; empty if XState does not declare it */
    function ownersOf(type, name) {
      const symbol = checker.getPropertyOfType(checker.getApparentType(type), name)
      return (symbol?.declarations ?? []).filter(isXstate).map(ownerOf)
    }

    /** Whether a type is, or includes, one of XState's own objects. */
    function isGuarded(type) {
      return checker
        .getPropertiesOfType(checker.getApparentType(type))
        .some(({ declarations = [] }) =>
          declarations.some((declaration) => isXstate(declaration) && isGuard(declaration)),
        )
    }

    function checkMember(node, type, name) {
      if (INTERNAL.has(name) || (INTERNAL_WORDS.has(name) && isAnyOrUnknown(type))) {
        context.report({ node, messageId: 'internal', data: { name } })
        return
      }
      const owner = ownersOf(type, name).find((candidate) => DOCUMENTED[candidate]?.has(name) !== true)
      if (owner !== undefined) context.report({ node, messageId: 'undocumented', data: { owner, name } })
    }

    function checkUnchanged(node, target) {
      if (isGuarded(typeOf(target))) context.report({ node, messageId: 'changed' })
    }

    function checkAssignment(node, target) {
      if (target.type !== 'MemberExpression') return
      const name = nameOf(target)
      const type = typeOf(target.object)
      if (name === undefined ? isGuarded(type) : ownersOf(type, name).some((owner) => GUARDED.has(owner))) {
        context.report({ node, messageId: 'changed' })
      }
    }

    function checkCast(node) {
      const from = typeOf(innermost(node.expression))
      if (isAnyOrUnknown(from) || !isGuarded(from)) return
      for (const property of getTypeAtLocation(node).getProperties()) {
        const name = property.getName()
        const isOurs = (property.declarations ?? []).some((declaration) => !isXstate(declaration))
        if (isOurs && !DOCUMENTED.Actor.has(name) && !DOCUMENTED.StateMachine.has(name)) {
          context.report({ node, messageId: 'cast', data: { name } })
        }
      }
    }

    return {
      MemberExpression(node) {
        const name = nameOf(node)
        if (name !== undefined) checkMember(node.property, typeOf(node.object), name)
      },
      ObjectPattern(node) {
        const tsNode = esTreeNodeToTSNodeMap.get(node)
        const type = checker.getNonNullableType(checker.getTypeAtLocation(tsNode))
        for (const property of node.properties) {
          if (property.type !== 'Property') continue
          const name = keyOf(property)
          if (name !== undefined) checkMember(property.key, type, name)
        }
      },
      'TSPropertySignature, PropertyDefinition, TSMethodSignature'(node) {
        const name = keyOf(node)
        if (name !== undefined && INTERNAL.has(name)) context.report({ node, messageId: 'internal', data: { name } })
      },
      'BinaryExpression[operator="in"]'(node) {
        if (node.left.type !== 'Literal') return
        const name = String(node.left.value)
        checkMember(node.left, typeOf(node.right), name)
      },
      AssignmentExpression(node) {
        checkAssignment(node, node.left)
      },
      'UnaryExpression[operator="delete"]'(node) {
        checkAssignment(node, node.argument)
      },
      CallExpression(node) {
        const { callee, arguments: given } = node
        if (callee.type !== 'MemberExpression' || callee.object.type !== 'Identifier' || given[0] === undefined) return
        const changing = CHANGING[callee.object.name] ?? []
        if (changing.includes('*') || changing.includes(nameOf(callee))) checkUnchanged(node, given[0])
      },
      'NewExpression[callee.name="Proxy"]'(node) {
        if (node.arguments[0] !== undefined) checkUnchanged(node, node.arguments[0])
      },
      TSAsExpression: checkCast,
      TSTypeAssertion: checkCast,
      'ImportDeclaration, ImportExpression, ExportNamedDeclaration, ExportAllDeclaration'(node) {
        const source = node.source?.value
        if (typeof source !== 'string' || !/^xstate(\/|$)/.test(source)) return
        if (!DOCUMENTED_MODULES.has(source)) context.report({ node, messageId: 'module', data: { name: source } })
        for (const { type, imported } of node.specifiers ?? []) {
          const name = imported?.name ?? imported?.value
          if (type === 'ImportSpecifier' && name.startsWith('_')) {
            context.report({ node, messageId: 'module', data: { name } })
          }
        }
      },
    }
  },
}

/** @param {string} names separated by spaces */
function members(names) {
  return new Set(names.split(' '))
}

function isXstate(declaration) {
  return /[\\/]node_modules[\\/]xstate[\\/]/.test(declaration.getSourceFile().fileName)
}

function isGuard(declaration) {
  return GUARDED.has(ownerOf(declaration))
}

/** Returns the name of the interface, class or type alias that contains a declaration. */
function ownerOf(declaration) {
  let name = 'module'
  // The last parent is the file itself.
  for (let node = declaration.parent; node?.parent !== undefined; node = node.parent) {
    if (node.name?.text !== undefined) name = node.name.text
  }
  return name
}

/** Returns `b` for `a.b` and `a['b']`; undefined for a computed name. */
function nameOf({ property, computed }) {
  if (!computed) return property.name
  return property.type === 'Literal' ? String(property.value) : undefined
}

function keyOf({ key, computed }) {
  if (key.type === 'Identifier' && !computed) return key.name
  return key.type === 'Literal' ? String(key.value) : undefined
}

/** Returns the expression inside casts: `a` for `a as unknown as B`. */
function innermost(expression) {
  return expression.type === 'TSAsExpression' || expression.type === 'TSNonNullExpression'
    ? innermost(expression.expression)
    : expression
}
