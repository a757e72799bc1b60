#!/usr/bin/env bash
# langchain 1.5.14 with TypeScript 5.9.3: the type of `createAgent({ tools })` accepts `[own, ...many]` and refuses `[...many, own]`, with the same
# tools, also without exactOptionalPropertyTypes. The error names the missing `responseFormat` of another overload. A spread of a non-empty tuple,
# `[Tool, ...Tool[]]`, is accepted in either place.
#
# Seen: one error TS2769, in the line of `[...many, own]`; none in the lines of `[own, ...many]` and `[...atLeastOne, own]`.
# Exits 1 when that changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"name":"finding","private":true,"type":"module"}' > package.json
npm install --silent --no-audit --no-fund --ignore-scripts langchain@1.5.14 @langchain/core@1.4.0 zod@4.6.7 typescript@5.9.3 --legacy-peer-deps
cat > agent.ts <<'TS'
import { createAgent } from 'langchain'
import { tool, type StructuredToolInterface } from '@langchain/core/tools'
import { z } from 'zod'
const own = tool(({ city }: { city: string }) => city, { name: 'own', schema: z.object({ city: z.string() }) })
declare const many: StructuredToolInterface[]
declare const atLeastOne: [StructuredToolInterface, ...StructuredToolInterface[]]
createAgent({ model: 'x', tools: [own, ...many] })
createAgent({ model: 'x', tools: [...many, own] })
createAgent({ model: 'x', tools: [...atLeastOne, own] })
TS
npx tsc --noEmit --strict --skipLibCheck --target es2023 --module nodenext --moduleResolution nodenext agent.ts > out.txt || true
seen=$(grep -o '^agent.ts([0-9]*,[0-9]*): error TS[0-9]*' out.txt || true)
echo "$seen"
grep -m1 -o "Property 'responseFormat' is missing" out.txt || true
[ "$(sed 's/,[0-9]*)/)/' <<<"$seen")" = 'agent.ts(8): error TS2769' ] || exit 1
